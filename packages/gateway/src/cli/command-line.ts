/** What the user typed, or a UsageError that says what to type instead. */
import { PLAN_HELP, type PlanWish, readPlan } from './plan-command.js'
import { QUEUE_HELP, type QueueWish, readQueue } from './queue-command.js'
import { readSimulate, SIMULATE_HELP, type SimulateWish } from './simulate-command.js'
import { didYouMean, parseWords, UsageError } from './usage.js'

export interface GatewayCommand {
  readonly kind: 'gateway'
  /** Nothing: `spillway.yaml` if there is one here, otherwise what is built in. */
  readonly config: string | undefined
  readonly port: number | undefined
  readonly adminPort: number | undefined
}

export type Command =
  | { readonly kind: 'help'; readonly of: 'spillway' | 'gateway' }
  | { readonly kind: 'version' }
  | GatewayCommand
  | SimulateWish
  | PlanWish
  | QueueWish

const OPTIONS = {
  config: { type: 'string', short: 'c' },
  port: { type: 'string', short: 'p' },
  'admin-port': { type: 'string' },
  help: { type: 'boolean', short: 'h' },
  version: { type: 'boolean', short: 'v' },
} as const

const COMMANDS = ['gateway', 'simulate', 'plan', 'queue'] as const

export function readCommand(args: readonly string[]): Command {
  if (args[0] === 'simulate') return readSimulate(args.slice(1))
  if (args[0] === 'plan') return readPlan(args.slice(1))
  if (args[0] === 'queue') return readQueue(args.slice(1))
  const { values, positionals } = parseWords(args, OPTIONS)
  const [name, ...more] = positionals
  if (name !== undefined && !(COMMANDS as readonly string[]).includes(name)) {
    throw new UsageError(`unknown command "${name}"${didYouMean(name, COMMANDS)}`)
  }
  if (values.help) return { kind: 'help', of: name === undefined ? 'spillway' : 'gateway' }
  if (values.version) return { kind: 'version' }
  if (name === undefined) return { kind: 'help', of: 'spillway' }
  if (more.length > 0) throw new UsageError(`what is "${more.join(' ')}"? It takes no arguments`)
  return {
    kind: 'gateway',
    config: values.config,
    port: readPort('--port', values.port),
    adminPort: readPort('--admin-port', values['admin-port']),
  }
}

function readPort(option: string, text: string | undefined): number | undefined {
  if (text === undefined) return undefined
  const port = /^\d+$/.test(text) ? Number(text) : Number.NaN
  if (port <= 65_535) return port
  throw new UsageError(`${option}: must be a port, 0 to 65535, got "${text}"`)
}

export const HELP = {
  spillway: `Spillway calls slow, broken or rate-limited services without hurting them.

  spillway gateway      runs the HTTP gateway; spillway gateway --help says more
  spillway simulate     a fleet in virtual time; spillway simulate --list lists scenarios
  spillway plan         a configuration from a contract and a latency, with reasons
  spillway queue        looks after jobs that wait; spillway queue --help says more
  spillway --version
  spillway --help
`,
  gateway: `spillway gateway: an HTTP gateway in front of LLM vendors and other services.

  spillway gateway [--config FILE] [--port N] [--admin-port N]

  -c, --config FILE     the configuration. Default: spillway.yaml, if there is one here;
                        otherwise a built-in one with a mock vendor, to try things out
  -p, --port N          where callers connect. Default: the configuration's, or 8080
      --admin-port N    health, metrics. Default: the configuration's, or 8081
  -h, --help            this

Environment:
  REDIS_URL             gateways with the same Redis share their limits and breakers
  and whatever the configuration names with env:NAME

SIGTERM or Ctrl-C stops it: not ready any more, running requests finish, exit code 0. A second
Ctrl-C does not wait for them.
`,
  simulate: SIMULATE_HELP,
  plan: PLAN_HELP,
  queue: QUEUE_HELP,
} as const
