/** `spillway simulate`: options and arguments of the command. */
import { documentationUrl } from 'spillway/internal'
import { type CommandRow, configOption, EXIT, HELP_OPTION, type OptionRows } from '../command.js'
import { didYouMean, parseArguments, readDuration, readWhole, UsageError } from '../parse-args.js'
import type { PodsCommand } from '../simulator/run-pods.js'
import type { SearchCommand } from '../simulator/run-search.js'
import type { SimulateCommand } from '../simulator/run-simulate.js'

const TRIGGERS = ['slow', 'fail', 'load'] as const
const SIZES = [10, 30, 100, 300, 1_000]
/** Exit code after Ctrl-C, the same as a shell reports. */
const INTERRUPTED = 130

const OPTIONS = {
  ...configOption("use the guard of this configuration instead of the scenario's"),
  vendor: {
    type: 'string',
    value: 'NAME',
    about: 'vendor of the configuration. Default: the first',
  },
  seed: {
    type: 'string',
    value: 'N',
    about: 'seed of the random numbers; the same seed gives the same result. Default: 1',
  },
  pods: {
    type: 'string',
    value: 'N',
    about: "number of pods. Default: the scenario's; of simulate pods, a list such as 10,100,1000",
  },
  report: {
    type: 'string',
    short: 'r',
    value: 'FILE',
    about: 'write an HTML page with plots to this file',
  },
  json: { type: 'boolean', about: 'write the result as JSON to stdout' },
  trigger: {
    type: 'string',
    value: 'KIND',
    oneOf: TRIGGERS,
    about: 'search: slow (the vendor takes longer), fail (a share of calls) or load. Default: slow',
  },
  'max-size': {
    type: 'string',
    value: 'N',
    about: 'search: largest trigger, a factor; for fail a share. Default: 16, for fail 1',
  },
  'max-duration': {
    type: 'string',
    value: 'TIME',
    about: 'search: longest trigger. Default: 10s',
  },
  'recover-within': {
    type: 'string',
    value: 'TIME',
    about: 'search: time after the trigger in which the fleet must recover. Default: 10s',
  },
  duration: { type: 'string', value: 'TIME', about: 'pods: virtual time. Default: 1h' },
  'outage-every': {
    type: 'string',
    value: 'TIME',
    about: 'pods: every vendor fails this often, for 5 seconds. Default: 10m',
  },
  list: { type: 'boolean', about: 'list the built-in scenarios' },
  ...HELP_OPTION,
} as const satisfies OptionRows

export const simulateCommand: CommandRow = {
  name: 'simulate',
  summary: 'Simulate a fleet in virtual time, with Spillway and without',
  usage: [
    'SCENARIO|FILE|all [--config FILE [--vendor NAME]] [--seed N] [--pods N] [--report FILE] [--json]',
    'search SCENARIO|FILE [--config FILE [--vendor NAME]] [--trigger KIND] [--max-size N] [--json] …',
    'pods [--pods N,N] [--duration TIME] [--outage-every TIME] [--seed N] [--json]',
    '--list',
  ],
  takesFiles: true,
  options: OPTIONS,
  notes: `SCENARIO is a built-in scenario, or all. FILE is a scenario in YAML or JSON; for its format, see
${documentationUrl('operations/simulator')}.

  search  find the triggers after which the fleet does not recover, and the smallest change that helps
  pods    simulate fleets of several sizes with 100 vendors: commands at the store, use of limits, breakers

Exit code 0: all expectations of the scenario hold; search: the fleet always recovers. 1: otherwise.`,
  async run(args) {
    const [first] = args
    if (first === 'search') {
      const { runSearch } = await import('../simulator/run-search.js')
      const found = await runSearch(readSearch(args.slice(1)))
      if (found === undefined) return INTERRUPTED
      return found.stable ? EXIT.ok : EXIT.failure
    }
    if (first === 'pods') {
      const { runPods } = await import('../simulator/run-pods.js')
      await runPods(readPods(args.slice(1)))
      return EXIT.ok
    }
    const command = readSimulate(args)
    const { listScenarios, runSimulate } = await import('../simulator/run-simulate.js')
    if (command !== 'list') return (await runSimulate(command)) ? EXIT.ok : EXIT.failure
    process.stdout.write(listScenarios())
    return EXIT.ok
  },
}

function readSimulate(args: readonly string[]): SimulateCommand | 'list' {
  const { values, positionals } = parseArguments(args, OPTIONS)
  refuseOthers('simulate SCENARIO', values, SCENARIO_ONLY)
  if (values.list) return 'list'
  const [what, ...more] = positionals
  if (what === undefined) throw new UsageError('simulate: missing scenario; --list shows them')
  if (more.length > 0)
    throw new UsageError(`unexpected argument "${more.join(' ')}"; name one scenario, or all`)
  if (what === 'all' && values.report !== undefined) {
    throw new UsageError('--report: needs a single scenario')
  }
  if (values.vendor !== undefined && values.config === undefined) {
    throw new UsageError('--vendor: needs --config')
  }
  return {
    what,
    config: values.config,
    vendor: values.vendor,
    seed: readWhole('--seed', values.seed, { min: 0 }),
    pods: readWhole('--pods', values.pods, { min: 1 }),
    report: values.report,
    json: values.json === true,
  }
}

/** Options that only some forms of the command accept. */
function refuseOthers(form: string, values: object, known: readonly string[]): void {
  const other = Object.keys(values).find((name) => !known.includes(name))
  if (other === undefined) return
  throw new UsageError(`--${other}: not an option of ${form}`)
}

const COMMON = ['seed', 'pods', 'json']
const SCENARIO_ONLY = [...COMMON, 'config', 'vendor', 'report', 'list']
const SEARCH_ONLY = [
  ...COMMON,
  'config',
  'vendor',
  'trigger',
  'max-size',
  'max-duration',
  'recover-within',
]

function readSearch(args: readonly string[]): SearchCommand {
  const { values, positionals } = parseArguments(args, OPTIONS)
  refuseOthers('simulate search', values, SEARCH_ONLY)
  const [what, ...more] = positionals
  if (what === undefined)
    throw new UsageError('simulate search: missing scenario; simulate --list shows them')
  if (more.length > 0) throw new UsageError(`unexpected argument "${more.join(' ')}"`)
  if (values.vendor !== undefined && values.config === undefined) {
    throw new UsageError('--vendor: needs --config')
  }
  const trigger = TRIGGERS.find((each) => each === values.trigger)
  if (values.trigger !== undefined && trigger === undefined) {
    throw new UsageError(
      `--trigger: unknown "${values.trigger}"${didYouMean(values.trigger, TRIGGERS)}`,
    )
  }
  const ms = (option: 'max-duration' | 'recover-within') =>
    values[option] === undefined ? undefined : readDuration(`--${option}`, values[option])
  return {
    what,
    config: values.config,
    vendor: values.vendor,
    seed: readWhole('--seed', values.seed, { min: 0 }),
    pods: readWhole('--pods', values.pods, { min: 1 }),
    trigger,
    maxSize: readSize(values['max-size'], trigger === 'fail'),
    maxDurationMs: ms('max-duration'),
    recoverMs: ms('recover-within'),
    json: values.json === true,
  }
}

function readSize(text: string | undefined, isShare: boolean): number | undefined {
  if (text === undefined) return undefined
  const size = Number(text)
  if (isShare ? size > 0 && size <= 1 : size > 1 && size <= 1_000) return size
  const range = isShare ? 'a share above 0, up to 1' : 'a factor above 1, up to 1000'
  throw new UsageError(`--max-size: must be ${range}, got "${text}"`)
}

function readPods(args: readonly string[]): PodsCommand {
  const { values, positionals } = parseArguments(args, OPTIONS)
  refuseOthers('simulate pods', values, [...COMMON, 'duration', 'outage-every'])
  if (positionals.length > 0) throw new UsageError(`unexpected argument "${positionals.join(' ')}"`)
  const { duration, 'outage-every': outageEvery } = values
  return {
    sizes: values.pods?.split(',').map((size) => readWhole('--pods', size, { min: 1 })!) ?? SIZES,
    plan: {
      ...(duration !== undefined && { durationMs: readDuration('--duration', duration) }),
      ...(outageEvery !== undefined && {
        outageEveryMs: readDuration('--outage-every', outageEvery),
      }),
    },
    seed: readWhole('--seed', values.seed, { min: 0 }),
    json: values.json === true,
  }
}
