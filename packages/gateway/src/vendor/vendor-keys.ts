/**
 * The keys of one vendor that are ours: which one a request uses, and which ones are quarantined. Requests that name no
 * key use the first one that is not quarantined. Keys that callers bring along are none of these.
 */
import { type Guard, type Spillway, SpillwayError } from 'spillway'
import {
  createKeyQuarantine,
  failureOf,
  type KeyAnswer,
  type KeyId,
  type KeyPermit,
  type KeyQuarantine,
  type KeyState,
  keyIdOf,
} from 'spillway/internal'
import type { TargetConfig, VendorConfig } from '../config/config.js'
import { RefCounted } from '../routing/ref-counted.js'
import { ACCEPTED, keyAnswerOf, rejectsKey, UNKNOWN } from './key-answer.js'
import type { VendorResponse } from './vendor-response.js'

const NONE: ReadonlySet<KeyId> = new Set()

export class VendorKeys {
  readonly #keys: readonly KeyId[]
  readonly #shared: RefCounted<KeyQuarantine>

  /** `before`: the keys of the same guard in an older configuration. */
  constructor(
    { name, keys }: VendorConfig,
    { spillway, guard }: { spillway: Spillway; guard: Guard },
    before: VendorKeys | undefined,
  ) {
    this.#keys = keys.map((key) => keyIdOf(name, key.name, key.secret))
    this.#shared =
      before === undefined
        ? new RefCounted(createKeyQuarantine(spillway, guard), (each) => each.close())
        : before.#shared.retain()
    this.#shared.value.use(this.#keys)
  }

  /**
   * The key for a request to this target. A refusal: all its keys are quarantined. Undefined: all of them are in
   * `rejected`. A key whose reset time is over is chosen, and its request becomes the probe.
   */
  choose(
    { key }: TargetConfig,
    rejected: ReadonlySet<KeyId> = NONE,
  ): KeyId | SpillwayError | undefined {
    let refusal: SpillwayError | undefined
    for (const each of this.#keys) {
      if ((key !== undefined && each.name !== key) || rejected.has(each)) continue
      const why = this.#shared.value.refusal(each)
      if (why === undefined) return each
      if (refusal === undefined || waitMs(why) < waitMs(refusal)) refusal = why
    }
    return refusal
  }

  /**
   * Sends one request with this key and reports what the answer says about it. Rejects with the refusal if the key was
   * quarantined while the request waited.
   */
  async send(key: KeyId, send: () => Promise<VendorResponse>): Promise<VendorResponse> {
    const entry = this.enter(key)
    const permit = entry instanceof Promise ? await entry : entry
    if (permit instanceof SpillwayError) throw permit
    let said: KeyAnswer = UNKNOWN
    try {
      const answer = await send()
      said = answer.ok ? ACCEPTED : errorAnswer(answer)
      return answer
    } finally {
      this.answered(permit, said)
    }
  }

  /** A permit for one request with this key, or a refusal; a promise if the store has to be asked. */
  enter(key: KeyId): ReturnType<KeyQuarantine['enter']> {
    return this.#shared.value.enter(key)
  }

  /** What the answer to the request of a permit says about its key. */
  answered(permit: KeyPermit, answer: KeyAnswer): void {
    this.#shared.value.answered(permit, answer)
  }

  /** The keys of the newest configuration. */
  states(): KeyState[] {
    return this.#shared.value.states()
  }

  close(): Promise<void> {
    return this.#shared.release()
  }
}

function errorAnswer(answer: VendorResponse): KeyAnswer {
  const said = keyAnswerOf(answer.status, failureOf(answer))
  answer.rejectsKey = rejectsKey(said)
  return said
}

function waitMs({ retryAfterMs = 0 }: SpillwayError): number {
  return retryAfterMs
}
