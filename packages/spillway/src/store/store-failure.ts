/** The store failed to reply. A refusal is a reply and never such an error. */
import { limitStack } from '../core/errors.js'

/**
 * What is known about a command that failed:
 * - `not-sent`: it never left this process, so it has changed nothing;
 * - `ambiguous`: it may have run, or may still run; count it as spent and never send it again;
 * - `server`: the server answered with an error. A script may have done part of its work.
 */
export type FailureKind = 'not-sent' | 'ambiguous' | 'server'

export class StoreFailure extends Error {
  readonly kind: FailureKind

  constructor(kind: FailureKind, message: string, cause?: unknown) {
    // During an outage every call creates one of these, and the stack shows only Spillway's own
    // code.
    const limit = limitStack(0)
    super(message)
    limitStack(limit)
    this.kind = kind
    if (cause !== undefined) this.cause = cause
  }
}

Object.defineProperty(StoreFailure.prototype, 'name', {
  value: 'StoreFailure',
  writable: true,
  configurable: true,
})
