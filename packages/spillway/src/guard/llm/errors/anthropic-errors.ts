/** Errors of Anthropic's API. */
import { type ErrorTable, objectIn, textIn } from './error-table.js'

/** `{ "type": "error", "error": { "type": …, "message": … } }` */
export const anthropicErrors: ErrorTable = {
  rules: [
    { name: 'billing_error', kind: 'quota-exhausted' },
    {
      message: /credit balance is too low|reached your specified .*usage limits/i,
      kind: 'quota-exhausted',
    },
    { status: 400, message: /prompt is too long|exceeds? context limit/i, kind: 'context-window' },
    { status: 400, message: /content filtering policy/i, kind: 'content-filter' },
    { name: 'authentication_error', kind: 'invalid-key' },
    { status: 403, message: /has been (?:disabled|revoked)/i, kind: 'invalid-key' },
    // Also with status 200, as an event in a stream.
    { name: 'overloaded_error', kind: 'overloaded' },
  ],
  read(status, body, wallMs) {
    const error = objectIn(body, 'error')
    const message = textIn(error, 'message')
    return {
      status,
      names: [textIn(error, 'type')],
      message,
      retryAfterMs: waitIn(message, wallMs),
    }
  },
}

const REGAIN = /regain access on (\d{4}-\d{2}-\d{2}) at (\d{2}:\d{2}) UTC/i

/** `You will regain access on 2026-12-01 at 00:00 UTC.` */
function waitIn(message: string, wallMs: number): number | undefined {
  const [, day, time] = REGAIN.exec(message) ?? []
  if (day === undefined) return undefined
  const atMs = Date.parse(`${day}T${time}:00Z`)
  return Number.isNaN(atMs) ? undefined : Math.max(0, atMs - wallMs)
}
