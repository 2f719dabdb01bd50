// npm test runs every test and ends with one line that people and machines can read.
// npm run test:quick runs the tests that need neither sockets nor processes.
// npm run test:long runs every test, random histories with many more seeds.
// Arguments after `--` go to Vitest, such as a part of a file name.

import { ensureBrowser } from './ensure-browser.mjs'
import { ensureFaketime } from './ensure-faketime.mjs'
import { ensurePrometheus } from './ensure-prometheus.mjs'
import { runVitest } from './run-vitest.mjs'
import { setupOrExit } from './setup.mjs'
import { closingLine } from './test-tally.mjs'

const OWN_OPTIONS = ['--quick', '--long']
const given = process.argv.slice(2)
const isQuick = given.includes('--quick')
const args = given.filter((arg) => !OWN_OPTIONS.includes(arg))
if (given.includes('--long')) process.env.SPILLWAY_TEST_LONG = '1'

const nothingRan = () =>
  process.stdout.write(`${closingLine({ passed: 0, failed: 1, skipped: 0 })}\n`)
if (isQuick) {
  await setupOrExit({ build: ['packages/gateway'], types: false }, nothingRan)
  args.push('--project', 'quick')
} else {
  // Tests run the built examples and the built gateway. Type errors are left to `npm run check`.
  const build = ['e2e', 'examples', 'packages/gateway']
  await setupOrExit({ build, types: false, redis: true }, nothingRan)
  const say = (line) => process.stderr.write(`${line}\n`)
  await ensureFaketime(say)
  await ensurePrometheus(say)
  await ensureBrowser(say)
}

// The tests use the built modules, which are up to date and load faster. That saves more time than the build takes.
process.env.SPILLWAY_TEST_BUILT = '1'
const { count, exitCode } = await runVitest(args)
if (count === undefined) {
  process.stderr.write('interrupted\n')
} else {
  if (count.passed + count.failed === 0) process.stderr.write('no test ran, so this is a failure\n')
  process.stdout.write(`${closingLine(count)}\n`)
}
process.exitCode = exitCode
