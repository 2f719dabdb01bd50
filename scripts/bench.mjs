// npm run bench: the benchmarks. Arguments after `--` go to them; stdout is theirs alone.

import { runBuilt } from './run-built.mjs'
import { setupOrExit } from './setup.mjs'

/** Suites that start a Redis server. */
const WITH_REDIS = ['shared', 'breaker', 'guard']

const args = process.argv.slice(2)
const redis = args.some((arg) => WITH_REDIS.includes(arg))
await setupOrExit({ build: ['bench'], redis })
await runBuilt({ project: 'bench', name: 'main', args })
