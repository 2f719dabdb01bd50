// npm run e2e: scenarios with real processes. Arguments after `--` go to them.

import { ensurePrometheus } from './ensure-prometheus.mjs'
import { runBuilt } from './run-built.mjs'
import { setupOrExit } from './setup.mjs'

await setupOrExit({ build: ['e2e'], redis: true })
if (process.argv.includes('alerts')) {
  await ensurePrometheus((line) => process.stderr.write(`${line}\n`))
}
await runBuilt({ project: 'e2e', name: 'main', args: process.argv.slice(2) })
