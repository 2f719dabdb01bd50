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
import { type RunOptions, type Scenario, UsageError } from './scenario.js'
import { shed } from './shed/shed.js'
import { soak } from './soak/soak.js'
import { workers } from './workers/workers.js'
import { writeResults } from './write-results.js'

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
  minutes: { type: 'string' },
  rate: { type: 'string' },
  seed: { type: 'string' },
  write: { type: 'boolean' },
  help: { type: 'boolean', short: 'h' },
} as const

try {
  process.exitCode = await main()
} catch (error) {
  if (!(error instanceof UsageError)) throw error
  process.stderr.write(`${error.message}\nnpm run e2e -- --help lists scenarios and options.\n`)
  process.exitCode = 2
}

async function main(): Promise<number> {
  const { values, positionals } = readArguments()
  const [name, ...more] = positionals
  const scenario = SCENARIOS.find((each) => each.name === name)
  if (values.help === true || name === undefined) {
    process.stdout.write(help())
    return 0
  }
  if (scenario === undefined || more.length > 0) {
    throw new UsageError(`unknown scenario "${positionals.join(' ')}"`)
  }
  if (values.write === true && scenario.page === undefined) {
    throw new UsageError(`--write: ${name} has no page in the documentation`)
  }
  if (values.write === true && values.only !== undefined) {
    throw new UsageError('--write: writes complete runs only; leave out --only')
  }
  const options = runOptions(scenario, values)
  process.stderr.write(`${scenario.what} (about ${scenario.seconds} s) …\n`)
  const rows = await scenario.run(options)
  for (const { figure, value, target, holds } of rows) {
    const line = values.json
      ? JSON.stringify({ figure, value, target, holds })
      : `${figure.padEnd(38)} ${String(value).padStart(10)}  ${target.padEnd(12)} ${verdictOf(target, holds)}`.trimEnd()
    process.stdout.write(`${line}\n`)
  }
  if (!values.json) process.stdout.write(`\n${scenario.table?.(rows) ?? ''}`)
  if (values.write === true) {
    if (scenario.interrupted?.()) process.stderr.write('interrupted: nothing was written\n')
    else writeResults(scenario, rows)
  }
  return rows.every(({ holds }) => holds) ? 0 : 1
}

function readArguments() {
  try {
    return parseArgs({ options: OPTIONS, allowPositionals: true })
  } catch (error) {
    // Without the hint about positional arguments.
    throw new UsageError((error as Error).message.split('. ')[0])
  }
}

function runOptions(
  scenario: Scenario,
  values: Partial<Record<keyof RunOptions, string>>,
): RunOptions {
  for (const name of ['only', 'minutes', 'rate', 'seed'] as const) {
    if (values[name] !== undefined && !scenario.options?.includes(name)) {
      throw new UsageError(`--${name} is not an option of ${scenario.name}`)
    }
  }
  const { only, ...numbers } = values
  const options: Record<string, string | number> = only === undefined ? {} : { only }
  for (const name of ['minutes', 'rate', 'seed'] as const) {
    const text = numbers[name]
    if (text === undefined) continue
    if (!(Number(text) > 0)) throw new UsageError(`--${name} has to be a number above 0`)
    options[name] = Number(text)
  }
  return options
}

function verdictOf(target: string, holds: boolean): string {
  if (target === '') return ''
  return holds ? 'holds' : 'MISSED'
}

function help(): string {
  const list = SCENARIOS.map(({ name, what }) => `  ${name.padEnd(12)} ${what}\n`).join('')
  return `npm run e2e -- SCENARIO [--json] [--only PART] [--minutes N] [--rate N] [--seed N] [--write]

  --json       print each figure as a line of JSON
  --only PART  run a part of the scenario
  --minutes N  soak: duration. Default: 30
  --rate N     soak: requests per second. Default: 300
  --seed N     soak: seed of the random faults and requests. Default: 1
  --write      faults, pods, soak: also write the figures, with date and commit, into the documentation; not with
               --only, and not after Ctrl-C

${list}`
}
