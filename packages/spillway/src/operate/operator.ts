/**
 * Operator actions on the whole fleet, from any process: one that serves calls, or one that only
 * has the options of its guards. All state is in the store, so every pod follows. Each action emits
 * one event with who did what, to what and for how long. Not for automatic protection: guards do
 * that.
 */
import { type SpillwayError, storeUnavailable } from '../core/errors.js'
import { emit } from '../core/events.js'
import {
  type Check,
  type Duration,
  duration,
  OptionsError,
  object,
  oneOf,
  optional,
  validate,
} from '../core/options/checks.js'
import { omitUndefined } from '../core/options/omit-undefined.js'
import { suggest } from '../core/options/suggest.js'
import { type Clock, systemClock } from '../core/time/clock.js'
import { clockOption } from '../core/time/clock-options.js'
import type { FleetReport } from '../guard/fleet/fleet-report.js'
import { type CheckedGuard, checkGuard, type GuardOptions } from '../guard/options.js'
import { listMembers } from '../shared/membership.js'
import { readStore } from '../shared/store-option.js'
import type { Store } from '../store/port.js'
import {
  ACTIONS,
  type OperatorAction,
  type OperatorRequest,
  type OperatorResult,
} from './actions.js'
import { type AuditEntry, type AuditedAction, addToAudit, readAudit } from './audit-log.js'
import { OperatedGuard } from './operated-guard.js'
import { post, type RecentAction, readRecent } from './recent-actions.js'

/** Options of `createOperator()`. */
export interface OperatorOptions {
  /** The store that the pods share. */
  store: Store
  /** The options of the pods' guards, by name. */
  guards: Readonly<Record<string, GuardOptions>>
  /** Names of the API keys that calls of each guard use. Other names are refused. Default: every name is accepted. */
  keys?: Readonly<Record<string, readonly string[]>>
  /**
   * How long actions stay in the audit log, which keeps the last 1,000. Range: 1 minute to 365 days. Default: 30
   * days.
   */
  auditMs?: Duration
  /** Time of day of the audit log. Default: the system clock. */
  clock?: Clock
}

/** Operates a fleet by hand: breakers, limits, pauses. Created by `createOperator()`. */
export interface Operator {
  /** Names of the known guards. */
  readonly guards: readonly string[]
  /**
   * Performs an action on all pods. Throws an `OptionsError` if it is invalid, and
   * STORE_UNAVAILABLE if the store did not answer.
   */
  perform(request: OperatorRequest): Promise<OperatorResult>
  /**
   * The state of the whole fleet, as stored. Throws STORE_UNAVAILABLE if the store does not answer.
   */
  fleet(): Promise<FleetReport>
  /**
   * Actions of operators of all processes in the last minute, the oldest first, without refused
   * ones. Throws STORE_UNAVAILABLE if the store does not answer.
   */
  recent(): Promise<RecentAction[]>
  /**
   * Actions of operators of all processes, refused ones included, the oldest first. Throws STORE_UNAVAILABLE if the
   * store does not answer.
   * @param options.sinceMs - Only entries of this last period. Range: from 1 ms. Default: `auditMs`.
   *
   * @example
   * const entries = await operator.audit({ sinceMs: '1d' })
   */
  audit(options?: { sinceMs?: Duration }): Promise<AuditEntry[]>
  /** Adds an action of another kind to the audit log, such as a reload. */
  note(action: AuditedAction): Promise<void>
}

const anything: Check<unknown> = (value) => value

const MINUTE_MS = 60_000
const DAY_MS = 86_400_000
const AUDIT_MS = 30 * DAY_MS
const auditDuration = duration({ min: MINUTE_MS, max: 365 * DAY_MS })

const readOptions = object({
  store: readStore,
  guards: anything,
  keys: anything,
  auditMs: optional(auditDuration, AUDIT_MS),
  clock: clockOption,
})

const ACTION_NAMES = Object.keys(ACTIONS) as OperatorAction[]
const readAction = oneOf(...ACTION_NAMES)

/**
 * Creates an operator for the fleet that uses this store: it controls breakers, pauses and limits on all pods.
 *
 * @example
 * const operator = createOperator({ store, guards: { openai: options } })
 * await operator.perform({ action: 'pause', guard: 'openai', by: 'ann', forMs: '5m' })
 */
export function createOperator(options: OperatorOptions): Operator {
  const { store, auditMs, clock } = validate('operator', options, readOptions)
  const guards = new Map(
    Object.entries(options.guards).map(([name, each]) => [
      name,
      new OperatedGuard(name, checkGuard(name, each), store, options.keys?.[name]),
    ]),
  )
  return new StoreOperator(store, guards, auditMs, clock)
}

/** For guards that exist already. */
export function operatorOf(
  store: Store,
  guards: Iterable<readonly [string, CheckedGuard]>,
): Operator {
  const operated = new Map<string, OperatedGuard>()
  for (const [name, options] of guards) operated.set(name, new OperatedGuard(name, options, store))
  return new StoreOperator(store, operated, AUDIT_MS, systemClock)
}

class StoreOperator implements Operator {
  readonly #store: Store
  readonly #guards: ReadonlyMap<string, OperatedGuard>

  readonly #auditMs: number
  readonly #clock: Clock

  constructor(
    store: Store,
    guards: ReadonlyMap<string, OperatedGuard>,
    auditMs: number,
    clock: Clock,
  ) {
    this.#store = store
    this.#guards = guards
    this.#auditMs = auditMs
    this.#clock = clock
  }

  get guards(): readonly string[] {
    return [...this.#guards.keys()]
  }

  async perform(request: OperatorRequest): Promise<OperatorResult> {
    const about: About = typeof request === 'object' && request !== null ? request : {}
    try {
      const result = await this.#perform(request)
      this.#report(result, 'done', result.message)
      await Promise.all([
        post(this.#store, result),
        this.note({ ...defined(result), result: 'done' }),
      ])
      return result
    } catch (error) {
      const known = error instanceof OptionsError ? error : unavailable(about, error)
      this.#report(about, error instanceof OptionsError ? 'refused' : 'failed', known.message)
      if (error instanceof OptionsError) {
        const refused = { ...about, result: 'refused', message: known.message }
        await addToAudit(this.#store, refused as AuditedAction, this.#auditMs)
      }
      throw known
    }
  }

  async audit({ sinceMs = this.#auditMs }: { sinceMs?: Duration } = {}): Promise<AuditEntry[]> {
    const ms = validate('sinceMs', sinceMs, duration({ min: 1 }))
    try {
      return await readAudit(this.#store, this.#clock.wallMs(), Math.min(ms, this.#auditMs))
    } catch (error) {
      throw unavailable({}, error)
    }
  }

  async note(action: AuditedAction): Promise<void> {
    await addToAudit(this.#store, action, this.#auditMs)
  }

  async fleet(): Promise<FleetReport> {
    try {
      const members = await listMembers(this.#store)
      const guards = Array.from(this.#guards.values(), (guard) => guard.report(members))
      return {
        store: this.#store.remote ? 'shared' : 'memory',
        livePods: members.length,
        pods: members.map(({ pod, ageMs }) => ({ pod, ageMs })),
        guards: await Promise.all(guards),
        // Only pods know their job queues.
        jobQueues: [],
      }
    } catch (error) {
      throw unavailable({}, error)
    }
  }

  async recent(): Promise<RecentAction[]> {
    try {
      return await readRecent(this.#store)
    } catch (error) {
      throw unavailable({}, error)
    }
  }

  async #perform(request: OperatorRequest): Promise<OperatorResult> {
    const action = validate('action', request?.action, readAction)
    // The table pairs rows with requests; the compiler cannot infer it.
    const { check, act } = ACTIONS[action] as unknown as {
      check: Check<CheckedRequest>
      act: (guard: OperatedGuard, request: CheckedRequest) => Promise<string>
    }
    const checked = validate('', request, unprefixed(check))
    const { guard, by, from, lane, key, forMs, unit, limit } = checked
    const message = await act(this.#guard(guard), checked)
    const about = { action, guard, by, from, lane, ...(key !== undefined && { key }) }
    return { ...about, forMs, unit, limit, message }
  }

  #guard(name: string): OperatedGuard {
    const known = this.#guards.get(name)
    if (known !== undefined) return known
    const close = suggest(name, this.guards)
    const all = `known: ${this.guards.join(', ') || 'none'}`
    const hint = close === undefined ? all : `did you mean '${close}'?`
    throw new OptionsError([{ path: 'guard', message: `unknown guard '${name}'; ${hint}` }])
  }

  /** Of an invalid request only the valid fields are reported. */
  #report(about: About, result: 'done' | 'refused' | 'failed', message: string) {
    emit({
      type: 'operator.acted',
      name: textOr(about.guard),
      action: textOr(about.action),
      by: textOr(about.by),
      from: typeof about.from === 'string' ? about.from : undefined,
      lane: typeof about.lane === 'string' ? about.lane : undefined,
      ...(typeof about.key === 'string' && { key: about.key }),
      unit: typeof about.unit === 'string' ? about.unit : undefined,
      limit: typeof about.limit === 'number' ? about.limit : undefined,
      forMs: typeof about.forMs === 'number' ? about.forMs : undefined,
      result,
      message,
    })
  }
}

/** Undefined fields are left out. */
function defined(result: OperatorResult): Omit<AuditedAction, 'result'> {
  return omitUndefined({ ...result }) as Omit<AuditedAction, 'result'>
}

/** Unchecked fields. */
type About = { [K in keyof CheckedRequest]?: unknown }

/** The fields of all requests. */
type CheckedRequest = Omit<OperatorResult, 'message'>

function textOr(value: unknown): string {
  return typeof value === 'string' ? value : ''
}

/** `forMs: must be …`, and not `.forMs: must be …`. */
function unprefixed<T>(check: Check<T>): Check<T> {
  return (value, path, problems) => {
    const checked = check(value, path, problems)
    for (const problem of problems) problem.path = problem.path.replace(/^\./, '') || 'request'
    return checked
  }
}

function unavailable({ guard = 'fleet' }: { guard?: unknown }, cause: unknown): SpillwayError {
  return storeUnavailable('breaker', textOr(guard), cause)
}
