/** `spillway plan`, as typed. */
import type { PlanNeeds } from '@spillway/simulator'
import { parseWords, readWhole, UsageError } from './usage.js'

export interface PlanCommand {
  readonly kind: 'plan'
  readonly needs: PlanNeeds
  /** Checked in place of our own advice. */
  readonly config: string | undefined
  readonly vendor: string | undefined
  readonly out: string | undefined
  readonly json: boolean
  readonly check: boolean
}

export type PlanWish = PlanCommand | { readonly kind: 'help'; readonly of: 'plan' }

const OPTIONS = {
  limit: { type: 'string', multiple: true },
  pods: { type: 'string' },
  latency: { type: 'string' },
  p99: { type: 'string' },
  deadline: { type: 'string' },
  cores: { type: 'string' },
  memory: { type: 'string' },
  sockets: { type: 'string' },
  config: { type: 'string', short: 'c' },
  vendor: { type: 'string' },
  out: { type: 'string', short: 'o' },
  json: { type: 'boolean' },
  'no-check': { type: 'boolean' },
  help: { type: 'boolean', short: 'h' },
} as const

export function readPlan(args: readonly string[]): PlanWish {
  const { values, positionals } = parseWords(args, OPTIONS)
  if (values.help) return { kind: 'help', of: 'plan' }
  if (positionals.length > 0)
    throw new UsageError(`what is "${positionals.join(' ')}"? It takes no arguments`)
  const { limit, pods, latency, p99, deadline, cores, memory, sockets } = values
  if (limit === undefined) throw new UsageError('--limit: say the contract, such as --limit 500/1m')
  if (latency === undefined)
    throw new UsageError('--latency: say how long a call takes, such as --latency 800ms')
  const places = readWhole('--sockets', sockets, { min: 1 })
  return {
    kind: 'plan',
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

export const PLAN_HELP = `spillway plan: from a contract, a fleet and a measured latency to a configuration.

  spillway plan --limit 500/1m [--limit "90000 tokens/1m"] --latency 800ms [--p99 4s] [--deadline 10s]
                [--pods N] [--cores N] [--memory 512MB] [--sockets N]
                [--config FILE [--vendor NAME]] [--out FILE] [--json] [--no-check]

      --limit N/TIME    the vendor's contract, once for each unit
      --latency TIME    how long a call takes on average; --p99: 99 of 100 are done within this
      --deadline TIME   how long callers wait. Default: three times --p99
      --pods N          how many there are. Default: 1; each with --cores (1) and --memory (512MB)
      --sockets N       connections a pod may have to the vendor
  -c, --config FILE     looks for values that fight in this configuration, and tries it out instead
      --vendor NAME     of this vendor. Default: the first
  -o, --out FILE        writes a configuration
      --json            everything on stdout
      --no-check        does not try it out in the simulator
  -h, --help            this

Exit code 0: the numbers hold in the simulator. 1: they do not.
`
