// npm run bench: the benchmarks. Arguments after `--` go to them; stdout is theirs alone.

import { ensureBrowser, findBrowser } from './ensure-browser.mjs'
import { ensureWrk } from './ensure-wrk.mjs'
import { runBuilt } from './run-built.mjs'
import { setupOrExit } from './setup.mjs'

/** Suites that start a Redis server. */
const WITH_REDIS = ['shared', 'breaker', 'guard', 'queue', 'gateway', 'middleware', 'dashboard']

const args = process.argv.slice(2)
const redis = args.some((arg) => WITH_REDIS.includes(arg))
const gateway = args.includes('gateway')
/** Suites whose load comes from wrk. */
const withWrk = gateway || args.includes('overload') || args.includes('middleware')
await setupOrExit({ build: gateway ? ['bench', 'packages/gateway'] : ['bench'], redis })
if (withWrk) await wrkOrExit()
if (args.includes('dashboard')) await nameBrowser()
await runBuilt({ project: 'bench', name: 'main', args })

/** A bench that needs one says so if there is none. */
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
