// npm start: the gateway, on spillway.yaml if there is one, otherwise with a mock vendor inside.
// Arguments after `--` go to `spillway gateway`.
//
// `exec` in package.json: a shell between npm and us would die of a Ctrl-C that we answer with a clean end,
// and npm would call that a failure.

import { runBuilt } from './run-built.mjs'
import { setupOrExit } from './setup.mjs'

await setupOrExit({ build: ['packages/gateway'] })
await runBuilt({
  project: 'packages/gateway',
  name: 'bin/spillway',
  args: ['gateway', ...process.argv.slice(2)],
  interruptedExitCode: 0,
})
