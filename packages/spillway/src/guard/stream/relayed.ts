/**
 * An answer whose body its owner passes on by itself, from one socket to another, as a gateway does:
 * no stream of the guard's stands between the two. The owner tells the guard what happens to the body,
 * and hears from it when the body has to be broken off, and how it ended.
 */
import type { TokenUsage } from '../llm/usage/token-usage.js'
import type { UsageFormat } from '../llm/usage/usage-format.js'
import type { BodyEnd } from './body-watch.js'

export const RELAYED: unique symbol = Symbol.for('spillway.relayed')

/** What the owner of a body tells about it. */
export interface BodySigns {
  /** The reader waits for the next piece. */
  reading(): void
  /** A piece came, and is passed on. */
  chunk(chunk: Uint8Array): void
  /** The reader does not wait for the next piece now, so silence does not count. */
  resting(): void
  /** It was passed on to its end. */
  complete(): void
  /** The downstream broke off. */
  truncated(error: unknown): void
  /** The reader does not want the rest. */
  left(): void
}

/** Reports to the owner of a body. */
export interface BodyOwner {
  /** How the vendor reports the tokens of its answers. Default: any known format. */
  readonly usageFormat?: UsageFormat | undefined
  /** It is over: let the downstream go, and tell the reader this error. */
  breakOff(error: unknown): void
  /** Once, however it ended. `usage`: what the answer says that it cost, if it is complete. */
  ended?(how: BodyEnd, usage: TokenUsage | undefined): void
}

export interface Relayed {
  /** Called once, when the answer has begun. From then on the guard watches. */
  [RELAYED](signs: BodySigns): BodyOwner
}

export function isRelayed(value: object): value is Relayed {
  return typeof (value as Partial<Relayed>)[RELAYED] === 'function'
}
