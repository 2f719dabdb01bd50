/** npm run e2e: long scenarios with real processes. */
import { parseArgs } from 'node:util'
import { alerts } from './alerts/alerts.js'
import { faults } from './faults/faults.js'
import { learnedLimits } from './learned-limits/learned-limits.js'
import { operate } from './operate/operate.js'
import { overload } from './overload/overload.js'
import { pods } from './pods/pods.js'
import { quotas } from './quotas/quotas.js'
import { rollout } from './rollout/rollout.js'
import { saveResults } from './save-results.js'
import type { Scenario } from './scenario.js'
import { shed } from './shed/shed.js'
import { soak } from './soak/soak.js'
import { workers } from './workers/workers.js'

/** To add a scenario, create a folder and add a row here. */
const SCENARIOS: readonly Scenario[] = [
  overload,
  shed,
  faults,
  operate,
  workers,
  learnedLimits,
  alerts,
  quotas,
  rollout,
  pods,
  soak,
]

const OPTIONS = {
  json: { type: 'boolean' },
  only: { type: 'string' },
  save: { type: 'string' },
  help: { type: 'boolean', short: 'h' },
} as const

process.exitCode = await main()

async function main(): Promise<number> {
  const { values, positionals } = parseArgs({
    options: OPTIONS,
    allowPositionals: true,
    strict: false,
  })
  const [name, ...more] = positionals
  const scenario = SCENARIOS.find((each) => each.name === name)
  if (values.help === true || name === undefined) {
    process.stdout.write(help())
    return 0
  }
  if (scenario === undefined || more.length > 0) {
    process.stderr.write(`unknown scenario "${positionals.join(' ')}"\n\n${help()}`)
    return 2
  }
  process.stderr.write(`${scenario.what} (about ${scenario.seconds} s) …\n`)
  const rows = await scenario.run(typeof values.only === 'string' ? values.only : undefined)
  for (const { figure, value, target, holds } of rows) {
    const line = values.json
      ? JSON.stringify({ figure, value, target, holds })
      : `${figure.padEnd(38)} ${String(value).padStart(10)}  ${target.padEnd(12)} ${verdictOf(target, holds)}`.trimEnd()
    process.stdout.write(`${line}\n`)
  }
  if (!values.json) process.stdout.write(`\n${scenario.table?.(rows) ?? ''}`)
  if (typeof values.save === 'string') saveResults(values.save, scenario, rows)
  return rows.every(({ holds }) => holds) ? 0 : 1
}

function verdictOf(target: string, holds: boolean): string {
  if (target === '') return ''
  return holds ? 'holds' : 'MISSED'
}

function help(): string {
  const list = SCENARIOS.map(({ name, what }) => `  ${name.padEnd(12)} ${what}\n`).join('')
  return `npm run e2e -- SCENARIO [--json] [--only PART] [--save FOLDER]

  --json         print each figure as a line of JSON
  --only PART    run a part of the scenario
  --save FOLDER  also write the figures as a table, with date and commit, and the plots into this folder

${list}`
}
