// npm run bench: runs the benchmarks with the arguments after `--`. Only the benchmarks write to stdout.

import { ensureBrowser, findBrowser } from './ensure-browser.mjs'
import { ensureWrk } from './ensure-wrk.mjs'
import { runBuilt } from './run-built.mjs'
import { setupOrExit } from './setup.mjs'

/** Suites that start a Redis server. */
const WITH_REDIS = ['shared', 'breaker', 'guard', 'queue', 'gateway', 'middleware', 'dashboard']

const args = process.argv.slice(2)
/** `--compare` and `--record-baseline` without a suite run all of them. */
const all =
  args.some((arg) => arg === '--compare' || arg === '--record-baseline') && !args.some(isWord)
const runs = (suite) => all || args.includes(suite)
const redis = WITH_REDIS.some(runs)
const gateway = runs('gateway')
/** Suites whose load comes from wrk. */
const withWrk = gateway || runs('overload') || runs('middleware')
await setupOrExit({ build: gateway ? ['bench', 'packages/gateway'] : ['bench'], redis })
if (withWrk) await wrkOrExit()
if (runs('dashboard')) await nameBrowser()
await runBuilt({ project: 'bench', name: 'main', args })

/** The name of a suite: neither an option nor the value of one. */
function isWord(arg, index) {
  return !arg.startsWith('-') && !['--runs', '--only'].includes(args[index - 1])
}

/** A bench that needs a browser reports an error if there is none. */
async function nameBrowser() {
  await ensureBrowser((line) => process.stderr.write(`${line}\n`))
  const browser = findBrowser()
  if (browser !== undefined) process.env.SPILLWAY_CHROMIUM = browser
}

async function wrkOrExit() {
  const problem = await ensureWrk((line) => process.stderr.write(`${line}\n`))
  if (problem === undefined) return
  process.stderr.write(`\n${problem}\n`)
  process.exit(1)
}
