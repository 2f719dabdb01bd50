/** `spillway simulate`, as typed. */
import { documentationUrl } from 'spillway/internal'
import { type CommandRow, configOption, EXIT, HELP_OPTION, type OptionRows } from '../command.js'
import { parseArguments, readWhole, UsageError } from '../parse-args.js'
import type { SimulateCommand } from '../simulator/run-simulate.js'

const OPTIONS = {
  ...configOption("runs the guard of this configuration in place of the scenario's"),
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
  pods: { type: 'string', value: 'N', about: "number of pods. Default: the scenario's" },
  report: {
    type: 'string',
    short: 'r',
    value: 'FILE',
    about: 'write an HTML page with plots to this file',
  },
  json: { type: 'boolean', about: 'write the result as JSON to stdout' },
  list: { type: 'boolean', about: 'list the built-in scenarios' },
  ...HELP_OPTION,
} as const satisfies OptionRows

export const simulateCommand: CommandRow = {
  name: 'simulate',
  summary: 'Simulate a fleet in virtual time, with Spillway and without',
  usage: [
    'SCENARIO|FILE|all [--config FILE [--vendor NAME]] [--seed N] [--pods N] [--report FILE] [--json]',
    '--list',
  ],
  takesFiles: true,
  options: OPTIONS,
  notes: `SCENARIO is one that comes along; all: one after the other. FILE is one of your own, YAML or JSON;
${documentationUrl('operations/simulator')} says how to write it.

Exit code 0: all promises of the scenario hold. 1: some do not.`,
  async run(args) {
    const command = readSimulate(args)
    const { listScenarios, runSimulate } = await import('../simulator/run-simulate.js')
    if (command !== 'list') return (await runSimulate(command)) ? EXIT.ok : EXIT.failure
    process.stdout.write(listScenarios())
    return EXIT.ok
  },
}

function readSimulate(args: readonly string[]): SimulateCommand | 'list' {
  const { values, positionals } = parseArguments(args, OPTIONS)
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
