/** `spillway plan`: options and arguments of the command. */
import { type CommandRow, configOption, EXIT, HELP_OPTION, type OptionRows } from '../command.js'
import { noArguments, parseArguments, readWhole, UsageError } from '../parse-args.js'
import type { PlanCommand } from '../simulator/run-plan.js'

const OPTIONS = {
  limit: {
    type: 'string',
    multiple: true,
    value: 'N/TIME',
    about: "limit of the vendor's contract; repeat for each unit",
  },
  latency: { type: 'string', value: 'TIME', about: 'average duration of a call' },
  p99: { type: 'string', value: 'TIME', about: '99th percentile of the duration of a call' },
  deadline: {
    type: 'string',
    value: 'TIME',
    about: 'time that callers wait. Default: three times --p99',
  },
  pods: { type: 'string', value: 'N', about: 'number of pods. Default: 1' },
  cores: { type: 'string', value: 'N', about: 'cores of each pod. Default: 1' },
  memory: { type: 'string', value: 'SIZE', about: 'memory of each pod. Default: 512MB' },
  sockets: { type: 'string', value: 'N', about: 'maximum connections of a pod to the vendor' },
  ...configOption(
    'check this configuration for conflicting values and simulate it, instead of computing one',
  ),
  vendor: {
    type: 'string',
    value: 'NAME',
    about: 'vendor of the configuration. Default: the first',
  },
  out: { type: 'string', short: 'o', value: 'FILE', about: 'write a configuration to this file' },
  json: { type: 'boolean', about: 'write everything as JSON to stdout' },
  'no-check': { type: 'boolean', about: 'skip the test in the simulator' },
  ...HELP_OPTION,
} as const satisfies OptionRows

export const planCommand: CommandRow = {
  name: 'plan',
  summary: 'Compute a configuration from a contract, a fleet and a measured latency',
  usage: [
    '--limit 500/1m [--limit "90000 tokens/1m"] --latency 800ms [--p99 4s] [--deadline 10s]',
    '--limit … --latency … --config FILE [--vendor NAME]',
  ],
  options: OPTIONS,
  notes: 'Exit code 0: the numbers hold in the simulator. 1: they do not.',
  async run(args) {
    const command = readPlan(args)
    const { runPlan } = await import('../simulator/run-plan.js')
    return (await runPlan(command)) ? EXIT.ok : EXIT.failure
  },
}

function readPlan(args: readonly string[]): PlanCommand {
  const { values, positionals } = parseArguments(args, OPTIONS)
  noArguments(positionals)
  const { limit, pods, latency, p99, deadline, cores, memory, sockets } = values
  if (limit === undefined)
    throw new UsageError('missing --limit, the contract of the vendor, such as --limit 500/1m')
  if (latency === undefined)
    throw new UsageError('missing --latency, the duration of a call, such as --latency 800ms')
  const places = readWhole('--sockets', sockets, { min: 1 })
  return {
    needs: {
      limits: limit.map(readLimit),
      pods: readWhole('--pods', pods, { min: 1 }) ?? 1,
      latencyMs: readMs('--latency', latency),
      ...(p99 !== undefined && { p99Ms: readMs('--p99', p99) }),
      ...(deadline !== undefined && { deadlineMs: readMs('--deadline', deadline) }),
      ...(cores !== undefined && { cores: readCores(cores) }),
      ...(memory !== undefined && { memoryBytes: readBytes(memory) }),
      ...(places !== undefined && { sockets: places }),
    },
    config: values.config,
    vendor: values.vendor,
    out: values.out,
    json: values.json === true,
    check: values['no-check'] !== true,
  }
}

/** `500/1m`, or `90000 tokens/1m`. */
function readLimit(text: string) {
  const found = /^(\d+)(?:\s*([a-z]\w*))?\/(\S+)$/i.exec(text)
  if (found === null)
    throw new UsageError(`--limit: must be like 500/1m or "90000 tokens/1m", got "${text}"`)
  const [, limit, unit = 'requests', window] = found
  return { limit: Number(limit), unit, windowMs: readMs('--limit', window!) }
}

const MS = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000 } as const

function readMs(option: string, text: string): number {
  const found = /^(\d+(?:\.\d+)?)(ms|s|m|h)?$/.exec(text)
  if (found !== null) return Number(found[1]) * MS[(found[2] ?? 'ms') as keyof typeof MS]
  throw new UsageError(`${option}: must be a duration, such as 800ms or 1m, got "${text}"`)
}

function readCores(text: string): number {
  const cores = Number(text)
  if (cores > 0 && cores < 1_024) return cores
  throw new UsageError(`--cores: must be a number such as 2 or 0.5, got "${text}"`)
}

const BYTES = {
  MB: 1_024 ** 2,
  MiB: 1_024 ** 2,
  Mi: 1_024 ** 2,
  GB: 1_024 ** 3,
  GiB: 1_024 ** 3,
  Gi: 1_024 ** 3,
} as const

function readBytes(text: string): number {
  const found = /^(\d+(?:\.\d+)?)(MB|MiB|Mi|GB|GiB|Gi)$/.exec(text)
  if (found !== null) return Number(found[1]) * BYTES[found[2] as keyof typeof BYTES]
  throw new UsageError(`--memory: must be like 512MB or 2GiB, got "${text}"`)
}
