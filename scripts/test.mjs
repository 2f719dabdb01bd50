// npm test: every test, then one closing line that people and machines can read. Arguments after
// `--` go to Vitest, such as a part of a file name.

import { ensureBrowser } from './ensure-browser.mjs'
import { ensureFaketime } from './ensure-faketime.mjs'
import { ensurePrometheus } from './ensure-prometheus.mjs'
import { runVitest } from './run-vitest.mjs'
import { setupOrExit } from './setup.mjs'
import { closingLine } from './test-tally.mjs'

// Tests run the built examples and the built gateway; whether the tests themselves type-check is for `npm run check`.
const nothingRan = () =>
  process.stdout.write(`${closingLine({ passed: 0, failed: 1, skipped: 0 })}\n`)
await setupOrExit(
  { build: ['bench', 'e2e', 'examples', 'packages/gateway'], redis: true },
  nothingRan,
)
const say = (line) => process.stderr.write(`${line}\n`)
await ensureFaketime(say)
await ensurePrometheus(say)
await ensureBrowser(say)

const { count, exitCode } = await runVitest(process.argv.slice(2))
if (count === undefined) {
  process.stderr.write('interrupted\n')
} else {
  if (count.passed + count.failed === 0) process.stderr.write('no test ran, so this is a failure\n')
  process.stdout.write(`${closingLine(count)}\n`)
}
process.exitCode = exitCode
