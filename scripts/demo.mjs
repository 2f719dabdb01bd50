// npm run demo: the overloaded-pod example. Arguments after `--` go to it.

import { runBuilt } from './run-built.mjs'
import { setupOrExit } from './setup.mjs'

await setupOrExit({ build: ['examples'] })
await runBuilt({
  project: 'examples',
  name: 'overloaded-pod',
  args: process.argv.slice(2),
  // Ctrl-C is the usual end of the demo, so npm must not report it as a failure.
  interruptedExitCode: 0,
})
