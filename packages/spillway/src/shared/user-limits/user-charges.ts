/** What requests are charged on their levels: at once if the store is here, together if it is not. */
import { SpillwayError } from '../../core/errors.js'
import { swallow } from '../../core/thenable.js'
import type {
  LevelCharge,
  LevelReply,
  LevelRequest,
  MaybePromise,
  Store,
} from '../../store/port.js'
import { Batcher } from './batcher.js'
import type { Level, Subject } from './levels.js'

/** A request with the levels that apply to it. */
export interface UserRequest extends LevelRequest {
  readonly applying: readonly Level[]
}

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
    const applying: Level[] = []
    const levels: LevelCharge[] = []
    for (const level of this.#levels) {
      const charge = level.chargeFor(subject)
      if (charge === undefined) continue
      applying.push(level)
      levels.push(charge)
    }
    return levels.length === 0 ? undefined : { applying, levels, cost }
  }

  charge(request: UserRequest): MaybePromise<LevelReply> {
    if (this.#store.remote) return this.#batcher.ask(request).catch(complain)
    const [reply] = this.#store.levels.check([request]) as LevelReply[]
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
