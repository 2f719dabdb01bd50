/** `spillway simulate`, as typed. */
import { parseWords, readWhole, UsageError } from './usage.js'

export interface SimulateCommand {
  readonly kind: 'simulate'
  /** A scenario that comes along, `all` of them, or a file. */
  readonly what: string
  readonly config: string | undefined
  readonly vendor: string | undefined
  readonly seed: number | undefined
  readonly pods: number | undefined
  readonly report: string | undefined
  readonly json: boolean
}

export type SimulateWish =
  | SimulateCommand
  | { readonly kind: 'help'; readonly of: 'simulate' }
  | { readonly kind: 'scenarios' }

const OPTIONS = {
  config: { type: 'string', short: 'c' },
  vendor: { type: 'string' },
  seed: { type: 'string' },
  pods: { type: 'string' },
  report: { type: 'string', short: 'r' },
  json: { type: 'boolean' },
  list: { type: 'boolean' },
  help: { type: 'boolean', short: 'h' },
} as const

export function readSimulate(args: readonly string[]): SimulateWish {
  const { values, positionals } = parseWords(args, OPTIONS)
  if (values.help) return { kind: 'help', of: 'simulate' }
  if (values.list) return { kind: 'scenarios' }
  const [what, ...more] = positionals
  if (what === undefined) throw new UsageError('simulate what? spillway simulate --list lists it')
  if (more.length > 0)
    throw new UsageError(`one scenario at a time, or all: what is "${more.join(' ')}"?`)
  if (what === 'all' && values.report !== undefined) {
    throw new UsageError('--report: is of one scenario; name it')
  }
  if (values.vendor !== undefined && values.config === undefined) {
    throw new UsageError('--vendor: needs --config, in which it stands')
  }
  return {
    kind: 'simulate',
    what,
    config: values.config,
    vendor: values.vendor,
    seed: readWhole('--seed', values.seed, { min: 0 }),
    pods: readWhole('--pods', values.pods, { min: 1 }),
    report: values.report,
    json: values.json === true,
  }
}

export const SIMULATE_HELP = `spillway simulate: a fleet in virtual time, with Spillway and without.

  spillway simulate SCENARIO|FILE|all [--config FILE [--vendor NAME]] [--seed N] [--pods N]
                    [--report FILE] [--json]
  spillway simulate --list

  SCENARIO              one that comes along; --list lists them. all: one after the other
  FILE                  one of your own, YAML or JSON; docs/simulator.md says how to write it
  -c, --config FILE     runs the guard of this configuration in place of the scenario's
      --vendor NAME     of this vendor. Default: the first
      --seed N          other chance. Default: 1. The same seed is the same result, every time
      --pods N          in place of the scenario's number
  -r, --report FILE     writes a page with plots; it needs nothing but a browser
      --json            the whole result on stdout
  -h, --help            this

Exit code 0: all promises of the scenario hold. 1: some do not. 2: what was typed makes no sense.
`
