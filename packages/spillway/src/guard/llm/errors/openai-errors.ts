/** Errors of OpenAI, of Azure OpenAI, and of other vendors with their format. */
import { readSpan } from '../../../shared/rate-limiter/vendor-headers.js'
import { type ErrorTable, objectIn, textIn } from './error-table.js'

/** `{ "error": { "message": …, "type": …, "code": … } }` */
export const openaiErrors: ErrorTable = {
  rules: [
    { name: 'insufficient_quota', kind: 'quota-exhausted' },
    { name: 'billing_hard_limit_reached', kind: 'quota-exhausted' },
    { name: 'billing_not_active', kind: 'quota-exhausted' },
    // The limits of a day are refilled all day long, but too slowly to wait for. Each model has its own.
    {
      status: 429,
      message: /\b(?:requests|tokens) per day\b/i,
      kind: 'quota-exhausted',
      perModel: true,
    },
    // Azure API Management, in front of some deployments.
    { status: 403, message: /out of call volume quota/i, kind: 'quota-exhausted' },
    // A request larger than the limit per minute is refused at any time.
    { message: /^request too large\b/i, kind: 'context-window' },
    { name: 'context_length_exceeded', kind: 'context-window' },
    {
      status: 400,
      message: /maximum context length|exceeds the context window/i,
      kind: 'context-window',
    },
    { name: 'content_filter', kind: 'content-filter' },
    { name: 'ResponsibleAIPolicyViolation', kind: 'content-filter' },
    { name: 'content_policy_violation', kind: 'content-filter' },
    { name: 'moderation_blocked', kind: 'content-filter' },
    { name: 'invalid_prompt', kind: 'content-filter' },
    { name: 'invalid_api_key', kind: 'invalid-key' },
    { name: 'account_deactivated', kind: 'invalid-key' },
    // OpenAI asks for a lower rate with a 503.
    { status: 503, message: /slow down/i, kind: 'rate-limited' },
  ],
  read(status, body) {
    const error = objectIn(body, 'error')
    const inner = objectIn(error, 'innererror')
    const message = textIn(error, 'message') || textIn(objectIn(body), 'message')
    const names = [textIn(error, 'code'), textIn(error, 'type'), textIn(inner, 'code')]
    return { status, names, message, retryAfterMs: waitIn(message) }
  },
}

const TRY_AGAIN = /try again in ((?:\d+(?:\.\d+)?(?:ms|[smhd]))+)/i
/** Azure's wording. */
const RETRY_AFTER = /retry after (\d+) (second|millisecond)/i

/** `Please try again in 7m12s.` or `Please retry after 2 seconds.` */
function waitIn(message: string): number | undefined {
  const [, span] = TRY_AGAIN.exec(message) ?? []
  if (span !== undefined) return readSpan(span)
  const [, amount, unit] = RETRY_AFTER.exec(message) ?? []
  if (amount === undefined) return undefined
  return Number(amount) * (unit?.toLowerCase() === 'second' ? 1_000 : 1)
}
