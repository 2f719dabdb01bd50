/** Errors that users can fix are shown without a stack. */

import { CommandError } from './command-error.js'
import { UsageError } from './parse-args.js'

/** The errors of the library and of configurations, by their codes: loading these for help would take a while. */
const KNOWN = new Set([
  'INVALID_CONFIG',
  'INVALID_OPTIONS',
  'STORE_UNAVAILABLE',
  'EACCES',
  'ENOENT',
  'EISDIR',
])

/** Undefined for unexpected errors, which are printed with their stack trace. */
export function errorMessage(error: unknown): string | undefined {
  if (error instanceof UsageError) {
    const command = error.command === undefined ? '' : `${error.command} `
    return `${error.message}\nRun spillway ${command}--help for usage.`
  }
  if (error instanceof CommandError) return error.message
  const { code, message } = error as NodeJS.ErrnoException
  if (code === 'EADDRINUSE')
    return `${message}\nStop the other process, or choose other ports with --port N and --admin-port N`
  return KNOWN.has(code ?? '') ? message : undefined
}
