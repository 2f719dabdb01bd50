/**
 * Stages that applications add: a maintenance window, a tenant's kill switch. They run at their position in the
 * table, for calls, retries, hedges and jobs, and appear in errors, snapshots, metrics and on the dashboard like
 * built-in stages.
 */
import {
  type Details,
  type Scope,
  SpillwayError,
  type Stage as StageName,
} from '../../core/errors.js'
import { callSafely } from '../../core/events.js'
import {
  type Check,
  func,
  object,
  oneOf,
  optional,
  text,
  together,
  validate,
} from '../../core/options/checks.js'
import { PRIORITIES, type Priority } from '../../core/options/priority.js'
import type { Outcome } from '../../core/outcome.js'
import { isThenable, swallow } from '../../core/thenable.js'
import type { Cost } from '../../shared/rate-limiter/permit.js'
import type { CallResult, Stage, StageAttempt, StageCall } from '../pipeline/stage.js'

/** A call as a custom stage sees it. */
export interface CustomStageCall {
  /** Name of the guard. */
  readonly guard: string
  /** `call`: it has just arrived. `retry` and `hedge`: further attempts. `job`: a job of a job queue. */
  readonly kind: 'call' | 'retry' | 'hedge' | 'job'
  /** Lane of the call. */
  readonly lane: string
  /** 1 for the first attempt. */
  readonly attempt: number
  /** Priority of the call. */
  readonly priority: Priority
  /** User of the call, if known. */
  readonly user: string | undefined
  /** Tier of the user, if known. */
  readonly tier: string | undefined
  /** Address of the client, if known. */
  readonly ip: string | undefined
  /** Endpoint of the call, if it names one. */
  readonly endpoint: string | undefined
  /** Of a job. */
  readonly tenant: string | undefined
  /** Estimated cost by unit. */
  readonly cost: Cost | undefined
}

/** Returned by `check` or `acquire` to refuse the call. */
export interface StageRefusal {
  /** Why, as a sentence for the message of the error. */
  readonly refuse: string
  /** Time after which a new call may succeed. Range: from 0 ms. Default: unknown. */
  readonly retryAfterMs?: number
  /** HTTP status of the refusal. Range: 400 to 599. Default: 503. */
  readonly status?: number
  /** Numbers behind the decision, for the error, events and the dashboard. */
  readonly details?: Details
}

/** How an attempt or a call ended, for `release`. */
export interface StageEnd {
  /** At least one attempt started. */
  readonly ran: boolean
  /** Of the last attempt; undefined if none started. */
  readonly outcome: Outcome | undefined
}

/** Options of `customStage()`: its name, its position and what it decides. */
export interface CustomStageOptions<Grant = unknown> {
  /**
   * Name in errors, events and metrics: lower-case letters, digits and hyphens, at most 40, beginning with a
   * letter; no name of a built-in stage.
   */
  name: string
  /**
   * The stage it comes after: a built-in one, or a custom one of the same guard. Default: none; give this or
   * `before`.
   */
  after?: string
  /** The stage it comes before. Default: none; give this or `after`. */
  before?: string
  /** Once for each call, or for each attempt. Default: `call` up to the queue, `attempt` after it. */
  per?: 'call' | 'attempt'
  /** Whose state decides: this pod's, or state that all pods share. Default: `local`. */
  scope?: Scope
  /** Returns a reason to refuse, or nothing. Synchronous; takes nothing and changes nothing. Default: none. */
  check?(call: CustomStageCall): StageRefusal | undefined
  /** Takes a resource of the application, after the checks of all stages. Synchronous. Default: none. */
  acquire?(call: CustomStageCall): Grant | StageRefusal
  /** Releases the grant, exactly once, when the attempt or the call has ended, a streamed body included. Default: none. */
  release?(grant: Grant, end: StageEnd): void
  /** Returns the state of the stage, for `guard.snapshot().stages`. Default: none. */
  snapshot?(): unknown
  /** What happens to a call if `check` or `acquire` throws. The exception is an event. Default: `allow`. */
  onError?: 'allow' | 'refuse'
}

/** Made by `customStage`, for the guard option `stages`. */
export class CustomStage {
  /** Name of the stage in errors, metrics and events. */
  readonly name: string
  /** The options it was created with. */
  readonly options: CheckedStage

  constructor(options: CheckedStage) {
    this.name = options.name
    this.options = options
  }
}

const NAME = /^[a-z][a-z0-9-]{0,39}$/

const readName: Check<string> = (value, path, problems) => {
  if (typeof value === 'string' && NAME.test(value)) return value
  const message = `must match [a-z][a-z0-9-]{0,39}, got ${JSON.stringify(value) ?? typeof value}`
  problems.push({ path, message })
  return ''
}

const readStage = together(
  object({
    name: readName,
    after: optional(text()),
    before: optional(text()),
    per: optional(oneOf('call', 'attempt')),
    scope: optional(oneOf('local', 'shared'), 'local'),
    check: optional(func<NonNullable<CustomStageOptions['check']>>()),
    acquire: optional(func<NonNullable<CustomStageOptions['acquire']>>()),
    release: optional(func<NonNullable<CustomStageOptions['release']>>()),
    snapshot: optional(func<NonNullable<CustomStageOptions['snapshot']>>()),
    onError: optional(oneOf('allow', 'refuse'), 'allow'),
  }),
  ({ after, before, check, acquire, release }, path, problems) => {
    if ((after === undefined) === (before === undefined)) {
      problems.push({ path, message: 'needs exactly one of after and before' })
    }
    if (check === undefined && acquire === undefined) {
      problems.push({ path, message: 'needs check, acquire or both' })
    }
    if (release !== undefined && acquire === undefined) {
      problems.push({
        path: `${path}.release`,
        message: 'needs acquire, because without it there is nothing to release',
      })
    }
  },
)

type CheckedStage = ReturnType<typeof readStage>

/**
 * Creates a stage of the application, for the guard option `stages`. It may be used by several guards.
 * @throws OptionsError if an option is missing or invalid.
 *
 * @example
 * const maintenance = customStage({
 *   name: 'maintenance',
 *   before: 'queue',
 *   check: () => (flags.maintenance ? { refuse: 'under maintenance' } : undefined),
 * })
 * spillway.guard('billing', { stages: [maintenance], timeout: { callMs: '10s' } })
 */
export function customStage<Grant = unknown>(options: CustomStageOptions<Grant>): CustomStage {
  const name = (options as Partial<CustomStageOptions> | undefined)?.name
  return new CustomStage(validate(`customStage(${name})`, options, readStage))
}

/** One custom stage of one guard. */
export class CustomStageRunner implements Stage {
  readonly name: StageName
  readonly scope: Scope
  readonly per: 'call' | 'attempt'
  readonly forJobs = true
  readonly check?: NonNullable<Stage['check']>
  readonly pausesJobs?: NonNullable<Stage['pausesJobs']>
  readonly enter?: NonNullable<Stage['enter']>
  readonly leave?: NonNullable<Stage['leave']>
  readonly acquire?: NonNullable<Stage['acquire']>
  readonly release?: NonNullable<Stage['release']>
  readonly giveBack?: NonNullable<Stage['giveBack']>
  readonly #guard: string
  readonly #options: CheckedStage

  constructor(guard: string, options: CheckedStage, per: 'call' | 'attempt') {
    this.#guard = guard
    this.#options = options
    this.name = options.name
    this.scope = options.scope
    this.per = per
    const { check, acquire } = options
    if (check !== undefined) {
      this.check = (call) => this.#refusalOf('check', () => check(customCallOf(guard, call)))
      this.pausesJobs = this.check
    }
    if (acquire === undefined) return
    if (per === 'call') {
      this.enter = (call) => this.#take(() => acquire(customCallOf(guard, call)))
      this.leave = (grant, result) => this.#release(grant as Taken, result)
    } else {
      this.acquire = (attempt, place) => {
        const taken = this.#take(() => acquire(customCallOfAttempt(guard, attempt)))
        if (taken instanceof SpillwayError) return taken
        attempt.kept[place] = taken
        return undefined
      }
      this.release = (attempt, outcome, _unfinished, place) =>
        this.#releaseKept(attempt, place, { ran: true, outcome })
      this.giveBack = (attempt, place) =>
        this.#releaseKept(attempt, place, { ran: false, outcome: undefined })
    }
  }

  passed(): Details {
    return {}
  }

  snapshot(): unknown {
    const { snapshot } = this.#options
    if (snapshot === undefined) return undefined
    return callSafely(this.#guard, `stage ${this.name}.snapshot`, snapshot, undefined)
  }

  /** Calls the application's function; undefined if it lets the call pass. */
  #refusalOf(method: 'check' | 'acquire', call: () => unknown): SpillwayError | undefined {
    const answer = this.#call(method, call)
    if (answer instanceof SpillwayError) return answer
    return isRefusal(answer) ? this.#refused(answer) : undefined
  }

  #take(acquire: () => unknown): Taken | SpillwayError | undefined {
    const answer = this.#call('acquire', acquire)
    if (answer instanceof SpillwayError) return answer
    if (isRefusal(answer)) return this.#refused(answer)
    return answer === FAILED ? undefined : { grant: answer }
  }

  /** Result of the function. If it throws: `FAILED`, or a refusal if `onError` is `refuse`. */
  #call(method: 'check' | 'acquire', call: () => unknown): unknown {
    const { onError } = this.#options
    const answer = callSafely(
      this.#guard,
      `stage ${this.name}.${method}`,
      () => checkedAnswer(call()),
      FAILED,
    )
    return answer === FAILED && onError === 'refuse' ? this.#refused(STAGE_FAILED) : answer
  }

  #releaseKept({ kept }: StageAttempt, place: number, end: CallResult): void {
    const taken = kept[place] as Taken | undefined
    kept[place] = undefined
    if (taken !== undefined) this.#release(taken, end)
  }

  #release({ grant }: Taken, end: CallResult): void {
    const { release } = this.#options
    if (release === undefined) return
    const run = () => swallow(release(grant, end))
    callSafely(this.#guard, `stage ${this.name}.release`, run, undefined)
  }

  #refused({ refuse, retryAfterMs, status, details }: StageRefusal): SpillwayError {
    return new SpillwayError({
      code: 'STAGE_REFUSED',
      stage: this.name,
      scope: this.scope,
      ...(retryAfterMs !== undefined && { retryAfterMs }),
      ...(status !== undefined && { status }),
      details: { ...details, name: this.#guard, reason: refuse },
      explain: ({ name, reason }) => `${name}: refused by stage ${this.name}: ${reason}`,
    })
  }
}

/** Wraps the grant of a stage, which may be any value, even undefined. */
interface Taken {
  readonly grant: unknown
}

const FAILED = Symbol('stage failed')
const STAGE_FAILED: StageRefusal = { refuse: 'the stage failed' }

function isRefusal(answer: unknown): answer is StageRefusal {
  return typeof answer === 'object' && answer !== null && Object.hasOwn(answer, 'refuse')
}

/** A refusal with wrong numbers, or a promise, is a mistake of the stage. */
function checkedAnswer(answer: unknown): unknown {
  if (isThenable(answer)) {
    swallow(answer)
    throw new TypeError('a stage must decide synchronously, but it returned a promise')
  }
  if (!isRefusal(answer)) return answer
  const { refuse, retryAfterMs = 0, status = 503 } = answer
  if (typeof refuse !== 'string') throw new TypeError('refuse must be a string')
  if (!(retryAfterMs >= 0 && retryAfterMs < Number.POSITIVE_INFINITY)) {
    throw new TypeError(`retryAfterMs must be a number of at least 0, got ${retryAfterMs}`)
  }
  if (!(Number.isInteger(status) && status >= 400 && status <= 599)) {
    throw new TypeError(`status must be an integer from 400 to 599, got ${status}`)
  }
  return answer
}

function customCallOf(
  guard: string,
  { kind, options, lane, priority, attempt, tenant, cost }: StageCall,
): CustomStageCall {
  const { user, tier, ip, endpoint } = options
  return {
    guard,
    kind: kind === 'attempt' ? (attempt > 1 ? 'retry' : 'call') : kind,
    lane,
    attempt,
    priority: PRIORITIES[priority] as Priority,
    user,
    tier,
    ip,
    endpoint,
    tenant,
    cost,
  }
}

function customCallOfAttempt(guard: string, seen: StageAttempt): CustomStageCall {
  const { options, laneInUse: lane, attempt, hedge, job, tenant } = seen
  const { user, tier, ip, endpoint, priority = 'normal', cost } = options
  const kind = job ? 'job' : hedge ? 'hedge' : attempt > 1 ? 'retry' : 'call'
  return { guard, kind, lane, attempt, priority, user, tier, ip, endpoint, tenant, cost }
}
