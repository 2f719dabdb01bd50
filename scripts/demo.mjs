// npm run demo: the overloaded-pod example. Arguments after `--` go to it.

import { runBuilt } from './run-built.mjs'
import { setupOrExit } from './setup.mjs'

await setupOrExit({ build: ['examples'] })
await runBuilt({
  project: 'examples',
  name: 'overloaded-pod',
  args: process.argv.slice(2),
  // Ctrl-C is how one leaves a demonstration, not a failure for npm to complain about.
  interruptedExitCode: 0,
})
