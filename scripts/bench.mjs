// npm run bench: the benchmarks. Arguments after `--` go to them; stdout is theirs alone.

import { runBuilt } from './run-built.mjs'
import { setupOrExit } from './setup.mjs'

await setupOrExit({ build: ['bench'] })
await runBuilt({ project: 'bench', name: 'main', args: process.argv.slice(2) })
