/** A server answers but cannot be used as it is configured. */

export class RedisSetupError extends Error {
  readonly code = 'REDIS_SETUP'

  constructor(message: string, cause?: unknown) {
    super(message)
    this.name = 'RedisSetupError'
    if (cause !== undefined) this.cause = cause
  }
}

/** The code of process warnings about a store that cannot be used. */
export const UNREACHABLE_CODE = 'SPILLWAY_STORE_UNREACHABLE'

/** Emits a process warning about a server: each message once. */
export type Warn = (message: string, code?: string) => void

export interface Warnings {
  readonly warn: Warn
  /** All messages so far. */
  readonly told: readonly string[]
}

export function createWarnings(): Warnings {
  const told: string[] = []
  return {
    told,
    warn(message, code) {
      if (told.includes(message)) return
      told.push(message)
      process.emitWarning(message, { type: 'SpillwayWarning', ...(code && { code }) })
    },
  }
}
