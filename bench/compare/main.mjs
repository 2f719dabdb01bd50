/** Runs the scenarios one after the other. See `run.mjs` for the command. */
import { execFileSync } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { availableParallelism, loadavg } from 'node:os'
import { fileURLToPath } from 'node:url'
import { exitCodeOf } from '../../scripts/run-command.mjs'
import { readOptionsOrExit } from './command-line.mjs'
import { versionOf } from './parts/footprint.mjs'
import { barChart } from './plot.mjs'
import { conditions, TABLES, tableText, withResults } from './tables.mjs'

// `process.exit` calls the `exit` listeners, which end Redis and the pods. A signal may come twice: from the terminal and
// from the parent process.
for (const signal of ['SIGINT', 'SIGTERM']) {
  process.on(signal, () => process.exit(exitCodeOf(signal)))
}

const { only, write } = readOptionsOrExit()
const chosen = TABLES.filter(({ id }) => only === undefined || id === only)
const scenarios = {}
for (const table of chosen) {
  const begun = measuredWith()
  const { run } = await import(`./scenarios/${table.id}.mjs`)
  const rows = await run((line) => process.stderr.write(`${table.id}: ${line}\n`))
  scenarios[table.id] = { ...begun, rows }
  process.stdout.write(`\n${table.id}\n\n${tableText(table, scenarios[table.id])}`)
}
process.stdout.write(`\n${conditions(scenarios)}`)
if (write) writeResults()
process.exit(0)

/** The last commit that changed the library. */
function commit() {
  const args = ['log', '-1', '--format=%h', '--abbrev=8', '--', '../../packages/spillway']
  return execFileSync('git', args, { cwd: pathOf('.'), encoding: 'utf8' }).trim()
}

/** With `--only`, scenarios are measured at different times, so each has its own conditions. */
function measuredWith() {
  const { dependencies } = readJson('package.json')
  const names = ['spillway', ...Object.keys(dependencies)]
  const redis = execFileSync(process.env.SPILLWAY_REDIS_SERVER ?? 'redis-server', ['--version'])
  return {
    date: new Date().toISOString().slice(0, 10),
    node: process.versions.node,
    redis: /v=([\d.]+)/.exec(`${redis}`)?.[1] ?? 'unknown',
    cores: availableParallelism(),
    versions: Object.fromEntries(names.map((name) => [name, versionOf(name)])),
    commit: commit(),
    load: Number(loadavg()[0].toFixed(1)),
  }
}

/** With `--only`, the other scenarios keep their results. */
function writeResults() {
  const known = only === undefined ? {} : readJson('results.json').scenarios
  const results = { scenarios: { ...known, ...scenarios } }
  writeFileSync(pathOf('results.json'), `${JSON.stringify(results, null, 2)}\n`)
  const page = pathOf('../../docs/project/comparison-results.md')
  writeFileSync(page, withResults(readFileSync(page, 'utf8'), results))
  for (const { id, plot } of TABLES) {
    if (plot === undefined) continue
    const svg = barChart(plot, results.scenarios[id].rows)
    writeFileSync(pathOf(`../../docs/diagrams/compare-${id}.svg`), svg)
  }
}

function readJson(path) {
  return JSON.parse(readFileSync(pathOf(path), 'utf8'))
}

function pathOf(path) {
  return fileURLToPath(new URL(path, import.meta.url))
}
