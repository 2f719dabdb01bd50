/** One call on its way, followed stage by stage: only a few are, so that it may cost something. */
import { type Details, type Scope, SpillwayError, type Stage } from '../../core/errors.js'
import type { Verdict } from '../../core/outcome.js'
import type { Machinery } from '../machinery.js'
import { ORDER } from '../order.js'
import type { RunOptions, UserStanding } from '../run-options.js'
import type { PathNote } from './decision-record.js'
import type { CallFacts, CallFollower } from './follower.js'

const SCOPES = new Map<Stage, Scope>(ORDER.map(({ stage, scope }) => [stage, scope]))

export function scopeOf(stage: Stage): Scope {
  return SCOPES.get(stage) ?? 'local'
}

/** Hears how it ended. */
export interface TraceListener {
  succeeded(trace: CallTrace, facts: CallFacts): void
  failed(trace: CallTrace, facts: CallFacts, error: unknown): void
}

export class CallTrace implements CallFollower {
  readonly path: PathNote[] = []
  attempts = 0
  sharedAgeMs: number | undefined
  readonly #listener: TraceListener
  readonly #machinery: Machinery
  readonly #options: RunOptions
  readonly #lane: string
  readonly #importance: number
  readonly #arrivedMs: number
  #entered = false
  #waitsSinceMs: number | undefined
  #standing: UserStanding | undefined
  #over = false

  constructor(
    listener: TraceListener,
    machinery: Machinery,
    options: RunOptions,
    lane: string,
    importance: number,
    arrivedMs: number,
  ) {
    this.#listener = listener
    this.#machinery = machinery
    this.#options = options
    this.#lane = lane
    this.#importance = importance
    this.#arrivedMs = arrivedMs
  }

  /** The same options, and this hears what the user's limits say. */
  listening(): RunOptions {
    const { onUserLimit } = this.#options
    return {
      ...this.#options,
      onUserLimit: (standing) => {
        this.#standing = standing
        return onUserLimit?.(standing)
      },
    }
  }

  /** Stages 1 and 2 have let it through. */
  entered(): void {
    this.#entered = true
    const { options } = this.#machinery
    if (options.shed !== undefined) this.#note('shed', 0, 'passed', this.#pressure(), 0)
    if (options.userLimits !== undefined) this.#note('user-limit', 0, 'passed', this.#userNumbers())
  }

  /** It goes into the room. */
  waits(nowMs: number): void {
    this.#waitsSinceMs = nowMs
  }

  /** An attempt begins: it has everything. */
  begins(
    attempt: number,
    { breaker, permit }: Parameters<CallFollower['begins']>[1],
    startMs: number,
  ): void {
    const { options, slots, limits } = this.#machinery
    this.attempts = attempt
    const since = this.#waitsSinceMs
    if (since !== undefined || options.queue !== undefined) {
      const waitedMs = since === undefined ? 0 : startMs - since
      this.#note('room', attempt, waitedMs > 0 ? 'waited' : 'passed', { waitedMs })
    }
    this.#waitsSinceMs = undefined
    if (options.breaker !== undefined) {
      this.#note('breaker', attempt, 'passed', {
        ...this.#breakerNumbers(),
        ...(isProbe(breaker) && { probe: true }),
      })
    }
    if (limits !== undefined) {
      const alone = limits.alone
      this.#note('vendor-limit', attempt, 'passed', {
        alone,
        ...(permit !== undefined && this.#options.cost),
      })
      // The store was asked just now.
      if (!alone) this.sharedAgeMs ??= 0
    }
    if (options.pace !== undefined) this.#note('pace', attempt, 'passed', defined(options.pace))
    if (options.concurrency !== undefined) {
      const { active, limit } = slots
      this.#note('concurrency', attempt, 'passed', { active, limit })
    }
    if (options.timeout !== undefined) {
      const { callMs, firstByteMs, idleMs } = options.timeout
      this.#note('timeout', attempt, 'passed', defined({ callMs, firstByteMs, idleMs }))
    }
  }

  /** An attempt has ended, or a streamed answer begun. */
  judged({ outcome, retryable }: Verdict): void {
    this.#note('call', this.attempts, 'ended', { outcome, retryable })
  }

  /** It has its value. */
  succeeded(): void {
    if (this.#begun()) this.#listener.succeeded(this, this.#facts())
  }

  /** It has failed, or was refused. */
  failed(error: unknown): void {
    if (!this.#begun()) return
    if (error instanceof SpillwayError) {
      if (!this.#entered && error.stage !== 'shed' && this.#machinery.shedder !== undefined) {
        this.#note('shed', 0, 'passed', this.#pressure(), 0)
      }
      const attempt = error.stage === 'shed' || error.stage === 'user-limit' ? 0 : this.attempts + 1
      this.#note(error.stage, attempt, 'refused', error.details)
    }
    this.#listener.failed(this, this.#facts(), error)
  }

  #begun(): boolean {
    const first = !this.#over
    this.#over = true
    return first
  }

  #facts(): CallFacts {
    return {
      options: this.#options,
      lane: this.#lane,
      importance: this.#importance,
      arrivedMs: this.#arrivedMs,
    }
  }

  #note(
    stage: Stage,
    attempt: number,
    verdict: PathNote['verdict'],
    numbers: Details | undefined,
    atMs = this.#machinery.clock.now() - this.#arrivedMs,
  ): void {
    this.path.push({ stage, attempt, atMs, verdict, scope: scopeOf(stage), numbers })
  }

  #pressure(): Details {
    const { shedder, room, slots } = this.#machinery
    const { pressure = 0, highest } = shedder?.snapshot(room.length, slots.active) ?? {}
    return { pressure, ...(highest !== undefined && { by: highest }) }
  }

  #userNumbers(): Details | undefined {
    if (this.#standing === undefined) return undefined
    const { level, limit, remaining, windowMs } = this.#standing
    this.sharedAgeMs ??= 0
    return { level, limit, remaining, windowMs }
  }

  #breakerNumbers(): Details {
    const known = this.#machinery.breaker?.snapshot(this.#lane)
    if (known === undefined) return {}
    const { state, calls, failures, inFlight, ageMs } = known
    if (this.#machinery.store.remote) this.sharedAgeMs = Math.max(this.sharedAgeMs ?? 0, ageMs)
    return { state, calls, failures, inFlight, ageMs }
  }
}

function isProbe(permit: unknown): boolean {
  return (permit as { probe?: unknown } | undefined)?.probe === true
}

function defined(values: Record<string, number | undefined>): Details {
  const result: Record<string, number> = {}
  for (const [name, value] of Object.entries(values)) if (value !== undefined) result[name] = value
  return result
}
