/** What requests are charged on their levels: at once if the store is here, together if it is not. */
import { SpillwayError } from '../../core/errors.js'
import { swallow } from '../../core/thenable.js'
import type { LevelReply, LevelRequest, MaybePromise, Store } from '../../store/port.js'
import { StoreFailure } from '../../store/store-failure.js'
import type { OutageRule } from '../outage/rules.js'
import { Batcher } from './batcher.js'
import type { Level, Subject } from './levels.js'
import type { LevelsAlone } from './levels-alone.js'

export interface UserRequest extends LevelRequest {
  /** Charged by this pod, because the store was away: what each of its levels goes by then. */
  alone?: readonly OutageRule[]
}

/** `alone`: decided by this pod. */
export type UserReply = LevelReply & { alone?: readonly OutageRule[] }

export class UserCharges {
  readonly #store: Store
  readonly #levels: readonly Level[]
  readonly #batcher: Batcher<LevelRequest, LevelReply>
  readonly #alone: LevelsAlone | undefined

  /** `alone`: for a remote store. */
  constructor(store: Store, levels: readonly Level[], alone?: LevelsAlone) {
    this.#store = store
    this.#levels = levels
    this.#alone = alone
    this.#batcher = new Batcher((requests) =>
      alone === undefined ? store.levels.check(requests) : this.#trip(alone, requests),
    )
  }

  /** Nothing, if no level applies. */
  requestFor(subject: Subject, cost: number): UserRequest | undefined {
    // Mostly there is one level, and the same request as the last time.
    const [only] = this.#levels
    if (this.#levels.length === 1 && cost === 1) return only?.requestFor(subject)
    const levels = this.#levels.flatMap((level) => level.chargeFor(subject) ?? [])
    return levels.length === 0 ? undefined : { levels, cost }
  }

  /** Which level it is that a reply names by its number. */
  levelOf(subject: Subject, number: number): Level['per'] | undefined {
    return this.#applying(subject)[number - 1]?.per
  }

  charge(subject: Subject, request: UserRequest, atMs?: number): MaybePromise<UserReply> {
    if (this.#alone !== undefined) return this.#chargeFar(this.#alone, subject, request)
    if (this.#store.remote) return this.#batcher.ask(request).catch(complain)
    const [reply] = this.#store.levels.check([request], atMs) as LevelReply[]
    return reply as LevelReply
  }

  /** The request came to nothing. If this is lost, it counts as spent. */
  refund(request: UserRequest): void {
    try {
      if (request.alone !== undefined) this.#alone?.refund(request, request.alone)
      else swallow(this.#store.levels.refund([request]))
    } catch {
      // As good as lost.
    }
  }

  #applying(subject: Subject): Level[] {
    return this.#levels.filter((level) => level.chargeFor(subject) !== undefined)
  }

  #chargeFar(alone: LevelsAlone, subject: Subject, request: UserRequest): MaybePromise<UserReply> {
    const { starting } = alone
    if (starting !== undefined) return starting.then(() => this.#chargeFar(alone, subject, request))
    if (!alone.inForce) {
      return this.#batcher.ask(request).catch(() => this.#chargeAlone(alone, subject, request))
    }
    if (alone.shouldTry) void this.#trip(alone, [request]).catch(() => {})
    return this.#chargeAlone(alone, subject, request)
  }

  /** Whoever gathered while the last trip failed is not sent on the next. */
  async #trip(alone: LevelsAlone, requests: LevelRequest[]): Promise<LevelReply[]> {
    if (alone.inForce && !alone.trying) throw new StoreFailure('not-sent', 'the store is away')
    alone.asked()
    try {
      const replies = await this.#store.levels.check(requests)
      alone.answered()
      return replies
    } catch (error) {
      alone.failed(error)
      throw error
    }
  }

  #chargeAlone(alone: LevelsAlone, subject: Subject, request: UserRequest): UserReply {
    const rules = this.#applying(subject).map(({ outage }) => outage)
    return { ...alone.charge(request, rules), alone: rules }
  }
}

function complain(cause: unknown): never {
  throw new SpillwayError({
    code: 'STORE_UNAVAILABLE',
    stage: 'user-limit',
    scope: 'shared',
    explain: () => 'user limits: the store did not answer',
    cause,
  })
}
