/**
 * The configured keys of one vendor: which one a request uses, and which ones are quarantined. Requests that name no
 * key use the first one that is not quarantined. Keys sent by callers are not included.
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

  /** Whether requests to this target may be sent with more than one key. */
  hasChoice({ key }: TargetConfig): boolean {
    return key === undefined && this.#keys.length > 1
  }

  /** With the key `first`, and with the next one whenever the vendor rejects a key, or it was quarantined or paused meanwhile. */
  async sendInTurn(
    target: TargetConfig,
    first: KeyId,
    send: (key: KeyId) => Promise<VendorResponse>,
    mayTryNext: () => boolean,
  ): Promise<VendorResponse> {
    const rejected = new Set<KeyId>()
    for (let key = first; ; ) {
      rejected.add(key)
      let answer: VendorResponse | undefined
      let refusal: unknown
      try {
        answer = await send(key)
      } catch (error) {
        if (!isQuarantined(error) && !isPaused(error)) throw error
        refusal = error
      }
      if (answer !== undefined && !answer.rejectsKey && !answer.exhaustsModel) return answer
      const next = this.choose(target, rejected)
      const isLast = !isKey(next) || (answer !== undefined && !mayTryNext())
      if (isLast && answer === undefined) throw refusal
      if (isLast) return answer as VendorResponse
      answer?.cancel()
      key = next
    }
  }

  /**
   * Sends one request with this key. Rejects with the refusal if the key was quarantined while the request waited.
   * `send` calls its argument once, with the answer or without one; a promise in between takes about 2 µs in a profile.
   */
  send(
    key: KeyId,
    send: (onAnswer: (answer: VendorResponse | undefined) => void) => Promise<VendorResponse>,
  ): Promise<VendorResponse> {
    const enter = (permit: KeyPermit | SpillwayError) => {
      if (permit instanceof SpillwayError) return Promise.reject(permit)
      return send((answer) => this.answered(permit, classifyForKey(answer)))
    }
    const entry = this.enter(key)
    return entry instanceof Promise ? entry.then(enter) : enter(entry)
  }

  /** A permit for one request with this key, or a refusal; a promise if it needs a round trip to the store. */
  enter(key: KeyId): ReturnType<KeyQuarantine['enter']> {
    return this.#shared.value.enter(key)
  }

  /** Reports the answer to a permit's request, for the state of its key. */
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

/** Classifies the answer for its key. Sets `rejectsKey` and `exhaustsModel` of the answer. */
function classifyForKey(answer: VendorResponse | undefined): KeyAnswer {
  if (answer === undefined) return UNKNOWN
  if (answer.ok) return ACCEPTED
  const failure = failureOf(answer)
  const keyAnswer = keyAnswerOf(answer.status, failure)
  answer.exhaustsModel = failure?.perModel === true
  answer.rejectsKey = rejectsKey(keyAnswer)
  return keyAnswer
}

export function isKey(choice: KeyId | SpillwayError | undefined): choice is KeyId {
  return choice !== undefined && !(choice instanceof SpillwayError)
}

/** Refused because its key was quarantined while the request waited. */
function isQuarantined(error: unknown): boolean {
  return error instanceof SpillwayError && error.details.key !== undefined
}

/** The lane of this model and key is paused: another key may be free. */
function isPaused(error: unknown): boolean {
  return (
    error instanceof SpillwayError &&
    error.code === 'VENDOR_LIMITED' &&
    error.details.paused === true
  )
}

function waitMs({ retryAfterMs = 0 }: SpillwayError): number {
  return retryAfterMs
}
