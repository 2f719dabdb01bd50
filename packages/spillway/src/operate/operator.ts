/**
 * Operator actions on the whole fleet, from any process: one that serves calls, or one that only
 * has the options of its guards. All state is in the store, so every pod follows. Each action emits
 * one event with who did what, to what and for how long. Not for automatic protection: guards do
 * that.
 */
import { type SpillwayError, storeUnavailable } from '../core/errors.js'
import { emit } from '../core/events.js'
import { type Check, OptionsError, object, oneOf, validate } from '../core/options/checks.js'
import { suggest } from '../core/options/suggest.js'
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
}

const anything: Check<unknown> = (value) => value

const readOptions = object({ store: readStore, guards: anything, keys: anything })

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
  const { store } = validate('operator', options, readOptions)
  const guards = new Map(
    Object.entries(options.guards).map(([name, each]) => [
      name,
      new OperatedGuard(name, checkGuard(name, each), store, options.keys?.[name]),
    ]),
  )
  return new StoreOperator(store, guards)
}

/** For guards that exist already. */
export function operatorOf(
  store: Store,
  guards: Iterable<readonly [string, CheckedGuard]>,
): Operator {
  const operated = new Map<string, OperatedGuard>()
  for (const [name, options] of guards) operated.set(name, new OperatedGuard(name, options, store))
  return new StoreOperator(store, operated)
}

class StoreOperator implements Operator {
  readonly #store: Store
  readonly #guards: ReadonlyMap<string, OperatedGuard>

  constructor(store: Store, guards: ReadonlyMap<string, OperatedGuard>) {
    this.#store = store
    this.#guards = guards
  }

  get guards(): readonly string[] {
    return [...this.#guards.keys()]
  }

  async perform(request: OperatorRequest): Promise<OperatorResult> {
    const about: About = typeof request === 'object' && request !== null ? request : {}
    try {
      const result = await this.#perform(request)
      this.#tell(result, 'done', result.message)
      await post(this.#store, result)
      return result
    } catch (error) {
      const known = error instanceof OptionsError ? error : unavailable(about, error)
      this.#tell(about, error instanceof OptionsError ? 'refused' : 'failed', known.message)
      throw known
    }
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
    throw new OptionsError([{ path: 'guard', message: `there is no guard '${name}'; ${hint}` }])
  }

  /** Of an invalid request only the valid fields are reported. */
  #tell(about: About, result: 'done' | 'refused' | 'failed', message: string) {
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
