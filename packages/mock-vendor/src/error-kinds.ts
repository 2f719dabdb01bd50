/** Errors that a knob requests by their meaning. Each vendor reports them in its own format. */
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

/** Meaning of a vendor's error. */
export type ErrorKind = (typeof ERROR_KINDS)[number]
