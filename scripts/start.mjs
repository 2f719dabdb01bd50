// npm start: the gateway, on spillway.yaml if there is one, otherwise with a mock vendor inside.
// Arguments after `--` go to `spillway gateway`.
//
// package.json starts this with `exec`. Otherwise Ctrl-C would kill the shell between npm and this process, and npm
// would report a failure after a clean end.

import { runBuilt } from './run-built.mjs'
import { setupOrExit } from './setup.mjs'

await setupOrExit({ build: ['packages/gateway'] })
await runBuilt({
  project: 'packages/gateway',
  name: 'bin/spillway',
  args: ['gateway', ...process.argv.slice(2)],
  interruptedExitCode: 0,
})
