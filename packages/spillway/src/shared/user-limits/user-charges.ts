/** What requests are charged on their levels: at once if the store is here, together if it is not. */
import { SpillwayError } from '../../core/errors.js'
import { swallow } from '../../core/thenable.js'
import type { LevelReply, LevelRequest, MaybePromise, Store } from '../../store/port.js'
import { Batcher } from './batcher.js'
import type { Level, OwnCharge, Subject, UserRequest } from './levels.js'

export class UserCharges {
  readonly #store: Store
  readonly #levels: readonly Level[]
  readonly #batcher: Batcher<LevelRequest, LevelReply>

  constructor(store: Store, levels: readonly Level[]) {
    this.#store = store
    this.#levels = levels
    this.#batcher = new Batcher((requests) => store.levels.check(requests))
  }

  /** Nothing, if no level applies. */
  requestFor(subject: Subject, cost: number): UserRequest | undefined {
    // Mostly there is one level, and the same request as the last time.
    const [only] = this.#levels
    if (this.#levels.length === 1 && cost === 1) return only?.requestFor(subject)
    const levels: OwnCharge[] = []
    for (const level of this.#levels) {
      const charge = level.chargeFor(subject)
      if (charge !== undefined) levels.push(charge)
    }
    return levels.length === 0 ? undefined : { levels, cost }
  }

  charge(request: UserRequest, atMs?: number): MaybePromise<LevelReply> {
    if (this.#store.remote) return this.#batcher.ask(request).catch(complain)
    const [reply] = this.#store.levels.check([request], atMs) as LevelReply[]
    return reply as LevelReply
  }

  /** The request came to nothing. If this is lost, it counts as spent. */
  refund(request: UserRequest): void {
    try {
      swallow(this.#store.levels.refund([request]))
    } catch {
      // As good as lost.
    }
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
