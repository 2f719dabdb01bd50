/** The server is reachable but cannot be used with this configuration. */

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
  readonly messages: readonly string[]
}

/** The end of each warning about a store that cannot be used. */
const CONSEQUENCE =
  'Limits and breakers are not shared until it can be used; Spillway keeps trying.'

/** `emits`: whether a message also becomes a process warning. */
export function createWarnings(emits = true): Warnings {
  const messages: string[] = []
  return {
    messages,
    warn(text, code) {
      const message =
        code === UNREACHABLE_CODE ? `${text.replace(/\.$/, '')}. ${CONSEQUENCE}` : text
      if (messages.includes(message)) return
      messages.push(message)
      if (!emits) return
      process.emitWarning(message, { type: 'SpillwayWarning', ...(code && { code }) })
    },
  }
}
