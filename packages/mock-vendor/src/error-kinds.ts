/** Errors that a knob requests by what they mean. Each vendor reports them in its own way. */
export const ERROR_KINDS = [
  'rate-limited',
  'quota-exhausted',
  'invalid-key',
  'context-window',
  'content-filter',
  'overloaded',
  'bad-request',
  'server',
] as const

/** What an error of a vendor means. */
export type ErrorKind = (typeof ERROR_KINDS)[number]
