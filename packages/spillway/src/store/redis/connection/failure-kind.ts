/** Classifies the error of a failed command: whether the command may have run. */
import type { FailureKind } from '../../store-failure.js'

export const OFFLINE = 'The client is offline'

/** Errors that clients raise before they have written anything: node-redis's, then ioredis's. */
const NEVER_WRITTEN = new Set([
  OFFLINE,
  'The client is closed',
  'The queue is full',
  'The command was aborted',
  "Stream isn't writeable and enableOfflineQueue options is false",
  "Cluster isn't ready and enableOfflineQueue options is false",
  'Cluster is ended.',
])

/**
 * By message, because an application may use another copy of the package, with other classes.
 * Errors of the server begin with a word in capitals; errors of sockets and clients never do.
 */
export function kindOf(error: unknown): FailureKind {
  const message = error instanceof Error ? error.message : ''
  if (/^[A-Z][A-Z\d_-]+(?: |$)/.test(message)) return 'server'
  return NEVER_WRITTEN.has(message) ? 'not-sent' : 'ambiguous'
}

/** If each address of a host has failed, Node leaves the message empty and sets the code. */
export function messageOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error)
  return error.message || String((error as NodeJS.ErrnoException).code ?? error.name)
}
