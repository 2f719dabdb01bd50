/**
 * The store did not answer. A refusal is an answer, never one of these.
 */
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
    // During an outage every call makes one of these; a stack would say only where we noticed.
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
