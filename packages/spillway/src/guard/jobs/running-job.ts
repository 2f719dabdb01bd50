/** One job in a worker, from its start to its end. */
import { LeaveSignal } from '../../core/abort.js'
import { SpillwayError } from '../../core/errors.js'
import { PRIORITIES, type Priority } from '../../core/options/priority.js'
import type { Verdict } from '../../core/outcome.js'
import type { EndKind, ReservedJob } from '../../store/queue-port.js'
import type { AttemptListener } from '../pipeline/attempt.js'
import type { Permits } from '../pipeline/stage.js'
import type { Job } from './api.js'
import type { Leased } from './leases.js'

/** How a turn ended; `text` is its result or its error. */
export interface TurnEnd {
  kind: EndKind
  text: string
  /** Wait that the downstream or a refusal requested. */
  afterMs: number
}

export class RunningJob<Data, Result> implements Job<Data>, Leased, AttemptListener<Result> {
  readonly id: string
  readonly turn: number
  readonly data: Data
  readonly attempt: number
  readonly attempts: number
  /** Turns before this one that did not count as an attempt. */
  readonly uncounted: number
  readonly priority: Priority
  readonly tenant: string | undefined
  readonly key: string | undefined
  readonly ageMs: number
  readonly leftMs: number | undefined
  readonly signal = new LeaveSignal()
  /** The generation of the breaker it runs in, and whether it is a probe. */
  readonly generation: number
  readonly probe: boolean
  final = false
  progressText: string | undefined
  leaseEndsMs: number
  /** Set if the lease was lost, the job was cancelled, or the worker was closed. */
  stopped: 'lost' | 'cancelled' | 'closed' | undefined
  readonly #ended: (job: RunningJob<Data, Result>, ending: TurnEnd) => void
  readonly #progressed: () => void

  /** Throws if the job's data is no JSON, or was lost. */
  constructor(
    job: ReservedJob,
    { breaker }: Permits,
    leaseEndsMs: number,
    ended: (job: RunningJob<Data, Result>, ending: TurnEnd) => void,
    progressed: () => void,
  ) {
    this.id = job.id
    this.turn = job.turn
    this.data = parseData(job.data)
    this.attempt = job.attempt
    this.attempts = job.attempts
    this.uncounted = job.uncounted
    this.priority = PRIORITIES[job.priority] as Priority
    this.tenant = job.tenant || undefined
    this.key = job.key || undefined
    this.ageMs = job.ageUs / 1_000
    this.leftMs = job.leftUs === 0 ? undefined : job.leftUs / 1_000
    this.generation = breaker?.generation ?? -1
    this.probe = breaker?.probe ?? false
    this.leaseEndsMs = leaseEndsMs
    this.#ended = ended
    this.#progressed = progressed
  }

  progress(value: unknown): void {
    this.progressText = JSON.stringify(value) ?? 'null'
    this.#progressed()
  }

  stop(why: 'lost' | 'cancelled' | 'closed'): void {
    this.stopped ??= why
    this.signal.abort(new JobStopped(this.id, why))
  }

  onValue(value: Result, { outcome, retryable, retryAfterMs = 0 }: Verdict): void {
    // A returned value that is a failure, such as a Response with status 503.
    if (retryable) return this.#end(outcome, `the downstream's answer: ${outcome}`, retryAfterMs)
    let text: string
    try {
      text = JSON.stringify(value) ?? ''
    } catch (error) {
      return this.#over({ kind: 'dead', text: `its result: ${errorTextOf(error)}`, afterMs: 0 })
    }
    this.#over({ kind: 'done', text, afterMs: 0 })
  }

  onError(error: unknown, { outcome, retryable, retryAfterMs = 0 }: Verdict): void {
    const text = errorTextOf(error)
    if (this.stopped !== undefined) {
      // The worker closes, or the store knows already that it was cancelled.
      return this.#over({ kind: 'returned', text: '', afterMs: 0 })
    }
    if (error instanceof SpillwayError && outcome === 'ignored') {
      // Another guard refused it, so the downstream was not called.
      return this.#over({ kind: 'released', text, afterMs: error.retryAfterMs ?? 0 })
    }
    if (retryable) return this.#end(outcome, text, retryAfterMs)
    this.#over({ kind: 'dead', text, afterMs: 0 })
  }

  #over(ending: TurnEnd): void {
    const last = this.final && ending.kind !== 'done'
    this.#ended(this, last ? { ...ending, kind: 'dead', text: ending.text || FINAL } : ending)
  }

  /** A downstream that throttles has not tried it. */
  #end(outcome: Verdict['outcome'], text: string, afterMs: number): void {
    const kind = outcome === 'throttled' ? 'released' : 'failed'
    this.#over({ kind, text, afterMs })
  }
}

/** Long data has a separate key in the store, which may be lost without the job. */
function parseData<Data>(text: string | null): Data {
  if (text === null) throw new Error('the job is no longer in the store')
  return JSON.parse(text)
}

const LONGEST_TEXT = 1_000
const FINAL = 'the job was stopped, and must not be retried'

export function errorTextOf(error: unknown): string {
  const text = error instanceof Error ? `${error.name}: ${error.message}` : String(error)
  return text.slice(0, LONGEST_TEXT)
}

/** The reason a job's signal is aborted with. */
export class JobStopped extends Error {
  /** Why the job was stopped. */
  readonly why: 'lost' | 'cancelled' | 'closed'

  constructor(id: string, why: 'lost' | 'cancelled' | 'closed') {
    super(STOP_MESSAGES[why](id))
    this.name = 'JobStopped'
    this.why = why
  }
}

const STOP_MESSAGES = {
  lost: (id: string) => `the lease of job ${id} has ended, so another worker may have it`,
  cancelled: (id: string) => `job ${id} was cancelled`,
  closed: (id: string) => `job ${id} returns to its queue, because its worker is closing`,
}
