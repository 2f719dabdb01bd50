/**
 * User limits: charged once for each call, before the queue, and refunded if the call never starts. With a remote
 * store the call waits for the reply. It leaves earlier if its caller aborts or its deadline passes.
 */
import { type CallerSignal, onAbort } from '../../core/abort.js'
import { type Details, readableTime, SpillwayError } from '../../core/errors.js'
import { callSafely } from '../../core/events.js'
import { swallow } from '../../core/thenable.js'
import type { Clock, Timer } from '../../core/time/clock.js'
import { deadlineError } from '../../core/time/deadline.js'
import type { ReplyListener } from '../../shared/user-limits/batcher.js'
import type { UserCharges, UserReply } from '../../shared/user-limits/charges.js'
import type { UserRequest } from '../../shared/user-limits/levels.js'
import type { LevelReply } from '../../store/port.js'
import {
  type CallResult,
  type PendingCall,
  PendingGrant,
  type Stage,
  type StageCall,
} from '../pipeline/stage.js'
import type { RunOptions, UserStanding } from '../run-options.js'
import { storeError } from './refusal-errors.js'

export class UserLimitStage implements Stage {
  readonly name = 'user-limit'
  readonly scope = 'shared'
  readonly per = 'call'
  readonly #guard: string
  readonly #charges: UserCharges
  readonly #clock: Clock
  /** The store is in this process and uses the same clock. */
  readonly #sameClock: boolean

  constructor(guard: string, charges: UserCharges, clock: Clock, sameClock: boolean) {
    this.#guard = guard
    this.#charges = charges
    this.#clock = clock
    this.#sameClock = sameClock
  }

  /** The charge, a refusal, or undefined if no level applies. A remote store decides later. */
  enter(
    { options }: Pick<StageCall, 'options'>,
    nowMs: number,
  ): UserRequest | SpillwayError | PendingCharge | undefined {
    const request = this.#charges.requestFor(options, 1)
    if (request === undefined) return undefined
    const charges = this.#charges
    if (!charges.remote) {
      const reply = charges.chargeHere(request, this.#sameClock ? nowMs : undefined)
      return this.#decide(options, request, reply)
    }
    const pending = new PendingCharge({
      guard: this.#guard,
      clock: this.#clock,
      decide: (reply) => this.#decide(options, request, reply),
      fail: (error) => this.#failure(error),
      refund: (charge) => charges.refund(charge),
    })
    let reply: UserReply | undefined
    try {
      reply = charges.request(request, pending)
    } catch (error) {
      if (error instanceof SpillwayError) return error
      throw error
    }
    return reply === undefined ? pending : this.#decide(options, request, reply)
  }

  leave(charge: unknown, { ran }: CallResult): void {
    if (!ran) this.#charges.refund(charge as UserRequest)
  }

  /** Charges a job that is being added: it cannot leave before the store has decided. */
  chargeJob(options: RunOptions): Promise<UserRequest | SpillwayError | undefined> {
    return new Promise((resolve) => {
      const charge = this.enter({ options }, this.#clock.now())
      if (charge instanceof PendingCharge) charge.onDecided = resolve
      else resolve(charge)
    })
  }

  refund(charge: UserRequest): void {
    this.#charges.refund(charge)
  }

  #decide(
    options: RunOptions,
    request: UserRequest,
    reply: UserReply,
  ): UserRequest | SpillwayError {
    if (reply.refusedBy !== 0) {
      return userLimitedError(this.#guard, request, reply, reply.alone !== undefined)
    }
    const { onUserLimit } = options
    if (reply.tightest > 0 && onUserLimit !== undefined) {
      const report = () => swallow(onUserLimit(standingOf(request, reply)))
      callSafely(this.#guard, 'onUserLimit', report, undefined)
    }
    const { levels, cost } = request
    const { alone, atUs, fullAtUs } = reply
    const charged = { levels, cost, atUs, fullAtUs }
    return alone === undefined ? charged : { ...charged, alone }
  }

  #failure(error: unknown): SpillwayError {
    const cause = (error as { cause?: unknown } | null | undefined)?.cause
    return storeError(this.#guard, cause ?? error, 'user-limit')
  }
}

interface ChargeReader {
  readonly guard: string
  readonly clock: Clock
  decide(reply: UserReply): UserRequest | SpillwayError
  fail(error: unknown): SpillwayError
  refund(charge: UserRequest): void
}

/** A pending charge. If its call leaves before the reply, the charge is refunded. */
export class PendingCharge extends PendingGrant implements ReplyListener<UserReply> {
  readonly #reader: ChargeReader
  #call: PendingCall | undefined
  #left = false
  #timer: Timer | undefined
  #stopListening: (() => void) | undefined
  /** For the charge of a job, which has no call. */
  onDecided: ((charge: UserRequest | SpillwayError) => void) | undefined

  constructor(reader: ChargeReader) {
    super()
    this.#reader = reader
  }

  whenDecided(call: PendingCall): void {
    this.#call = call
    const { clock, guard } = this.#reader
    if (call.deadlineMs !== Number.POSITIVE_INFINITY) {
      const leftMs = Math.max(0, call.deadlineMs - clock.now())
      this.#timer = clock.schedule(leftMs, () => this.#leave(deadlineError('user-limit', guard)))
    }
    if (call.signal !== undefined) this.#listen(call.signal)
  }

  #listen(signal: CallerSignal): void {
    try {
      this.#stopListening = onAbort(signal, () => this.#leave(signal.reason))
    } catch (error) {
      // `signal` is not a valid signal.
      this.#leave(error)
    }
  }

  #leave(reason: unknown): void {
    this.#left = true
    this.#end()
    this.#call?.onLeft(reason)
  }

  onReply(reply: UserReply): void {
    this.#inCallersContext(() => this.#decided(this.#reader.decide(reply)))
  }

  onFailure(error: unknown): void {
    this.#inCallersContext(() => this.#decided(this.#reader.fail(error)))
  }

  /** Replies come in batches, so the current context may be that of another call. */
  #inCallersContext(run: () => void): void {
    if (this.#call === undefined) run()
    else this.#call.runInAsyncScope(run, undefined, undefined)
  }

  #decided(charge: UserRequest | SpillwayError): void {
    if (this.#left) {
      if (!(charge instanceof Error)) this.#reader.refund(charge)
      return
    }
    this.#end()
    this.#call?.onDecided(charge)
    this.onDecided?.(charge)
  }

  #end(): void {
    this.#timer?.cancel()
    this.#stopListening?.()
  }
}

/** The level with the least left, after this call was charged. */
function standingOf({ levels }: UserRequest, reply: LevelReply): UserStanding {
  const charge = levels[reply.tightest - 1]
  return {
    level: charge?.per ?? 'user',
    limit: charge?.limit ?? 0,
    windowMs: (charge?.windowUs ?? 0) / 1_000,
    remaining: reply.remaining,
    resetMs: reply.resetUs / 1_000,
    algorithm: charge?.algorithm ?? 'token-bucket',
  }
}

export function userLimitedError(
  name: string,
  request: UserRequest,
  reply: LevelReply,
  alone: boolean,
): SpillwayError {
  const retryAfterMs = reply.waitUs / 1_000
  const { level, limit, windowMs, remaining } = standingOf(request, reply)
  return new SpillwayError({
    code: 'USER_LIMITED',
    stage: 'user-limit',
    scope: alone ? 'local' : 'shared',
    retryAfterMs,
    details: { name, level, limit, windowMs, remaining, retryAfterMs },
    explain: alone ? explainAlone : explainLimited,
  })
}

function explainLimited({ name, level, limit, windowMs, retryAfterMs }: Details): string {
  return `${name}: the limit per ${level} is used up (${limit} in ${readableTime(windowMs)}, userLimits); retry in ${readableTime(retryAfterMs)}`
}

function explainAlone(details: Details): string {
  return `${explainLimited(details)}; the store is unreachable, so this pod decides alone`
}
