/**
 * Charges requests on their levels: synchronously with a memory store, in batches with a remote
 * one.
 */
import { storeUnavailable } from '../../core/errors.js'
import type { Random } from '../../core/random.js'
import { swallow } from '../../core/thenable.js'
import type { Clock } from '../../core/time/clock.js'
import type { LevelReply, LevelRequest, MaybePromise, Store } from '../../store/port.js'
import { StoreFailure } from '../../store/store-failure.js'
import { isSharingOff, type OutageRule } from '../outage/rules.js'
import { Batcher, type ReplyListener } from './batcher.js'
import {
  checkSubject,
  createLevels,
  type Level,
  type readLevels,
  type Subject,
  type UserLevelCharge,
  type UserRequest,
} from './levels.js'
import { OutageLevels, type StoreView } from './outage-levels.js'

/** `alone`: this pod decided, by these outage rules of its levels. */
export type UserReply = LevelReply & { alone?: readonly OutageRule[] }

export class UserCharges {
  /** Whether replies are asynchronous. */
  readonly remote: boolean
  readonly #store: Store
  readonly #levels: readonly Level[]
  readonly #batcher: Batcher<UserRequest, UserReply>
  readonly #alone: OutageLevels | undefined

  /** `alone`: for a remote store. */
  constructor(store: Store, levels: readonly Level[], alone?: OutageLevels) {
    this.remote = store.remote
    this.#store = store
    this.#levels = levels
    this.#alone = alone
    this.#batcher = new Batcher({
      send: (requests) =>
        alone === undefined ? store.levels.check(requests) : this.#checkInStore(alone, requests),
      instead: (request, error) => {
        if (alone === undefined) throw storeUnavailable('user-limit', 'user limits', error)
        return this.#chargeAlone(alone, request)
      },
    })
  }

  /** Undefined if no level applies. */
  requestFor(subject: Subject, cost: number): UserRequest | undefined {
    checkSubject(subject)
    // Mostly there is one level, and the same request as the last time.
    const [only] = this.#levels
    if (this.#levels.length === 1 && cost === 1) return only?.requestFor(subject)
    const levels: UserLevelCharge[] = []
    for (const level of this.#levels) {
      const charge = level.chargeFor(subject)
      if (charge !== undefined) levels.push(charge)
    }
    return levels.length === 0 ? undefined : { levels, cost }
  }

  charge(request: UserRequest): MaybePromise<UserReply> {
    if (!this.remote) return this.chargeHere(request)
    let onReply!: (reply: UserReply) => void
    let onFailure!: (error: unknown) => void
    const later = new Promise<UserReply>((resolve, reject) => {
      onReply = resolve
      onFailure = reject
    })
    return this.request(request, { onReply, onFailure }) ?? later
  }

  /** For a memory store. */
  chargeHere(request: UserRequest, atMs?: number): UserReply {
    const [reply] = this.#store.levels.check([request], atMs) as LevelReply[]
    return reply as LevelReply
  }

  /** For a remote store. Undefined: the requester is called back. */
  request(request: UserRequest, listener: ReplyListener<UserReply>): UserReply | undefined {
    if (this.#alone !== undefined) return this.#requestRemote(this.#alone, request, listener)
    this.#batcher.add(request, listener)
    return undefined
  }

  /** The request never started. If the refund is lost, it counts as spent. */
  refund(request: UserRequest): void {
    try {
      if (request.alone !== undefined) this.#alone?.refund(request, request.alone)
      else swallow(this.#store.levels.refund([request]))
    } catch {
      // The refund is lost.
    }
  }

  #requestRemote(
    alone: OutageLevels,
    request: UserRequest,
    listener: ReplyListener<UserReply>,
  ): UserReply | undefined {
    const { starting } = alone
    if (starting !== undefined) {
      void starting.then(() => this.#requestStarted(alone, request, listener))
      return undefined
    }
    if (!alone.inForce) {
      this.#batcher.add(request, listener)
      return undefined
    }
    if (alone.shouldTry) void this.#checkInStore(alone, [request]).catch(() => {})
    return this.#chargeAlone(alone, request)
  }

  #requestStarted(
    alone: OutageLevels,
    request: UserRequest,
    listener: ReplyListener<UserReply>,
  ): void {
    let reply: UserReply | undefined
    try {
      reply = this.#requestRemote(alone, request, listener)
    } catch (error) {
      return listener.onFailure(error)
    }
    if (reply !== undefined) listener.onReply(reply)
  }

  /** Requests that collected while the last round trip failed are not sent. */
  async #checkInStore(alone: OutageLevels, requests: LevelRequest[]): Promise<LevelReply[]> {
    if (alone.inForce && !alone.trying)
      throw new StoreFailure('not-sent', 'the store is unreachable')
    alone.commandSent()
    try {
      const replies = await this.#store.levels.check(requests)
      alone.answered()
      return replies
    } catch (error) {
      alone.failed(error)
      throw error
    }
  }

  #chargeAlone(alone: OutageLevels, request: UserRequest): UserReply {
    const rules = request.levels.map(({ outage }) => outage)
    return { ...alone.charge(request, rules), alone: rules }
  }
}

interface UserChargesOptions {
  store: Store
  name: string | undefined
  levels: ReturnType<typeof readLevels>
  /** The number of pods that share levels with the outage rule `share`. */
  expectedPods: number
  clock: Clock
  random: Random
}

/**
 * Charges of user limits that belong to no guard. Without a guard's watch they find out on their own
 * when the store is unreachable, and then follow their levels' outage rules.
 */
export function createUserCharges(options: UserChargesOptions): UserCharges {
  const { store, name, levels, expectedPods, clock, random } = options
  const fleet = { pods: expectedPods, rank: expectedPods - 1 }
  const view: StoreView = isSharingOff()
    ? { status: 'off', reachable: false, fleet }
    : { status: 'shared', reachable: true, fleet }
  const alone = store.remote
    ? new OutageLevels(name ?? 'user limits', view, clock, random)
    : undefined
  return new UserCharges(store, createLevels(levels, name), alone)
}
