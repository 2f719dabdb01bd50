/**
 * Operator actions as data, for programs, HTTP and the command line. Each action is one row of the table: its fields
 * and its effect.
 */
import {
  type Check,
  type Checked,
  type Duration,
  duration,
  type Fields,
  integer,
  object,
  optional,
  text,
} from '../core/options/checks.js'
import type { OperatedGuard } from './operated-guard.js'

interface OnGuard {
  /** Name of the guard. */
  guard: string
  /** Who acts: a person or a program. */
  by: string
  /** Where the request came from, such as an address; for information only. Default: unknown. */
  from?: string
}

interface ForSomeTime {
  /** How long the action is in force. Range: 1 ms to 30 days. */
  forMs: Duration
}

interface OnKey extends OnGuard {
  /** Name of an API key in the configuration of a gateway. */
  key: string
}

interface OnLane extends OnGuard {
  /** The lane to act on. Default: all lanes. */
  lane?: string
}

/** An action, with its operator and what it applies to. */
export type OperatorRequest =
  /**
   * Refuses every call until all operators who isolated it have released it, or their times are
   * over.
   */
  | (OnLane & ForSomeTime & { action: 'isolate' })
  /** Ends the isolation by the same operator. */
  | (OnLane & { action: 'release' })
  /** Opens the breaker; then probes decide. */
  | (OnLane & {
      action: 'open'
      /** Of `open`: how long the breaker stays open. Range: 1 ms to 30 days. Default: as long as after failures. */
      forMs?: Duration
    })
  /** Closes the breaker and ends all isolations. */
  | (OnLane & { action: 'close' })
  /** Closes the breaker and resets its counts; isolations stay. */
  | (OnLane & { action: 'reset' })
  /** Grants no permits of the vendor limits for `forMs`. */
  | (OnLane & ForSomeTime & { action: 'pause' })
  /** Ends a pause, even one that the vendor asked for. */
  | (OnLane & { action: 'resume' })
  /** Changes the limit of one unit for a while, on all lanes. */
  | (OnGuard &
      ForSomeTime & {
        action: 'override'
        /** Of `override`: unit of the limit, such as `requests`, or its id in a snapshot. */
        unit: string
        /** Of `override`: the new limit, in units per window. Range: integers from 1. */
        limit: number
      })
  /** Ends an override early. */
  | (OnGuard & {
      action: 'restore'
      /** Of `restore`: unit of the limit whose override ends. */
      unit: string
    })
  /** No pod uses this API key for `forMs`, whatever its secret is. */
  | (OnKey & ForSomeTime & { action: 'quarantine-key' })
  /** Ends every quarantine of this API key. */
  | (OnKey & { action: 'release-key' })

/** An action of an operator. */
export type OperatorAction = OperatorRequest['action']

/** What an action did. */
export interface OperatorResult {
  /** What was done. */
  action: OperatorAction
  /** The guard it applies to. */
  guard: string
  /** Who did it. */
  by: string
  /** The address it came from, if known. */
  from: string | undefined
  /** Undefined: all lanes. */
  lane: string | undefined
  /** The API key, if one was quarantined or released. */
  key?: string
  /** In milliseconds. */
  forMs: number | undefined
  /** The unit of the limit, if one was set. */
  unit: string | undefined
  /** The new limit, if one was set. */
  limit: number | undefined
  /** What was done, as text. */
  message: string
}

const LONGEST_MS = 30 * 86_400_000
const forMs = duration({ min: 1, max: LONGEST_MS })
const onGuard = { guard: text(), by: singleLine(100), from: optional(singleLine(200)) }
const onKey = { ...onGuard, key: singleLine(200) }
const onLane = { ...onGuard, lane: optional(text()) }

interface Row<F extends Fields> {
  readonly check: (value: unknown, path: string, problems: never[]) => Checked<F>
  /** Returns what was done, as text. */
  readonly act: (guard: OperatedGuard, request: Checked<F>) => Promise<string>
}

function row<F extends Fields>(fields: F, act: Row<F>['act']) {
  // The action itself was read to find its row.
  return { check: object({ action: text(), ...fields }), act }
}

export const ACTIONS = {
  isolate: row({ ...onLane, forMs }, async (guard, { lane, by, forMs }) => {
    const command = { kind: 'isolate', holder: by, forUs: toUs(forMs) } as const
    return resultText('isolated', await guard.hold(lane, command))
  }),
  release: row(onLane, async (guard, { lane, by }) =>
    resultText('released', await guard.hold(lane, { kind: 'release', holder: by })),
  ),
  open: row({ ...onLane, forMs: optional(forMs) }, async (guard, { lane, forMs }) => {
    const forUs = forMs === undefined ? undefined : { forUs: toUs(forMs) }
    return resultText('opened', await guard.command(lane, { kind: 'trip', ...forUs }))
  }),
  close: row(onLane, async (guard, { lane }) => {
    await guard.hold(lane, { kind: 'release' })
    return resultText('closed', await guard.command(lane, { kind: 'reset' }))
  }),
  reset: row(onLane, async (guard, { lane }) =>
    resultText('reset', await guard.command(lane, { kind: 'reset' })),
  ),
  pause: row({ ...onLane, forMs }, async (guard, { lane, forMs }) =>
    resultText('paused', await guard.pause(lane, toUs(forMs))),
  ),
  resume: row(onLane, async (guard, { lane }) => resultText('resumed', await guard.resume(lane))),
  override: row(
    { ...onGuard, unit: text(), limit: integer({ min: 1 }), forMs },
    async (guard, { unit, limit, forMs }) => {
      const { id, usual } = await guard.override(unit, limit, toUs(forMs))
      return `limit on ${id} is ${limit} in place of ${usual}`
    },
  ),
  restore: row({ ...onGuard, unit: text() }, async (guard, { unit }) => {
    const { id, usual } = await guard.override(unit, 0, 0)
    return `limit on ${id} is ${usual} again`
  }),
  'quarantine-key': row({ ...onKey, forMs }, async (guard, { key, by, forMs }) => {
    await guard.quarantineKey(key, by, toUs(forMs))
    return `quarantined key ${key}`
  }),
  'release-key': row(onKey, async (guard, { key }) =>
    (await guard.releaseKey(key)) ? `released key ${key}` : `key ${key} was not quarantined`,
  ),
} as const satisfies Record<OperatorAction, unknown>

function resultText(done: string, lanes: readonly string[] | 'all'): string {
  if (lanes === 'all') return `${done} all lanes`
  return `${done} ${lanes.length === 1 ? 'lane' : 'lanes'} ${lanes.join(', ')}`
}

function toUs(ms: number): number {
  return Math.ceil(ms * 1_000)
}

/** Text that operators write and that ends up in logs: one line of limited length. */
function singleLine(most: number): Check<string> {
  return (value, path, problems) => {
    const good = typeof value === 'string' && value.trim() !== '' && value.length <= most
    // biome-ignore lint/suspicious/noControlCharactersInRegex: those are what must not be in it
    if (good && !/[\u0000-\u001f\u007f]/.test(value)) return value.trim()
    const got = value === undefined ? ', got nothing' : ''
    problems.push({ path, message: `must be a line of 1 to ${most} characters${got}` })
    return undefined as never
  }
}
