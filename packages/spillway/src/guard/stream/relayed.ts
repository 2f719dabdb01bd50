/**
 * An answer whose body is forwarded by its owner from one socket to another, as a gateway does, without a stream of
 * the guard in between. The owner reports the progress of the body. The guard reports when the body has to be
 * aborted, and how it ended.
 */
import type { TokenUsage } from '../llm/usage/token-usage.js'
import type { UsageFormat } from '../llm/usage/usage-format.js'
import type { BodyEnd } from './body-watch.js'

export const RELAYED: unique symbol = Symbol.for('spillway.relayed')

/** Events that the owner of a body reports. */
export interface BodySigns {
  /** The reader waits for the next piece. */
  reading(): void
  /** A chunk arrived and is forwarded. */
  chunk(chunk: Uint8Array): void
  /** The reader does not wait for the next piece now, so silence does not count. */
  resting(): void
  /** It was passed on to its end. */
  complete(): void
  /** The downstream broke off. */
  truncated(error: unknown): void
  /** The reader cancelled the body. */
  left(): void
}

/** Reports to the owner of a body. */
export interface BodyOwner {
  /** How the vendor reports the tokens of its answers. Default: any known format. */
  readonly usageFormat?: UsageFormat | undefined
  /** Aborts the body: the owner releases the downstream and passes this error to the reader. */
  breakOff(error: unknown): void
  /** Called once at the end. `usage`: usage in the answer, if the answer is complete. */
  ended?(how: BodyEnd, usage: TokenUsage | undefined): void
}

export interface Relayed {
  /** Called once, when the answer has begun. From then on the guard watches. */
  [RELAYED](signs: BodySigns): BodyOwner
}

export function isRelayed(value: object): value is Relayed {
  return typeof (value as Partial<Relayed>)[RELAYED] === 'function'
}
