/** Errors of Gemini's API, in the format of Google's APIs. */

import { untilMidnightMs } from '../../../core/time/calendar-day.js'
import { readSpan } from '../../../shared/rate-limiter/vendor-headers.js'
import { type ErrorTable, objectIn, textIn } from './error-table.js'

/** Gemini's daily quotas reset at midnight in this zone. */
const QUOTA_ZONE = 'America/Los_Angeles'
/** Defined here, not by Gemini: the violated quota is a daily one. */
const PER_DAY = 'quota of a day'
/** As `PER_DAY`, for one model. */
const PER_DAY_AND_MODEL = 'quota of a day and model'

/** `{ "error": { "code": 429, "status": "RESOURCE_EXHAUSTED", "message": …, "details": […] } }` */
export const geminiErrors: ErrorTable = {
  rules: [
    { name: PER_DAY_AND_MODEL, kind: 'quota-exhausted', perModel: true },
    { name: PER_DAY, kind: 'quota-exhausted' },
    { name: 'API_KEY_INVALID', kind: 'invalid-key' },
    { name: 'API_KEY_EXPIRED', kind: 'invalid-key' },
    { name: 'CONSUMER_SUSPENDED', kind: 'invalid-key' },
    { name: 'UNAUTHENTICATED', kind: 'invalid-key' },
    { message: /api key (?:not valid|expired)|reported as leaked/i, kind: 'invalid-key' },
    { status: 400, message: /input token count .*exceeds the maximum/i, kind: 'context-window' },
    { message: /prohibited_content|blocked (?:by|due to) safety/i, kind: 'content-filter' },
    { name: 'RESOURCE_EXHAUSTED', kind: 'rate-limited' },
    { name: 'UNAVAILABLE', kind: 'overloaded' },
  ],
  read(status, body, wallMs) {
    const error = objectIn(body, 'error')
    const details = Array.isArray(error.details) ? error.details.map((each) => objectIn(each)) : []
    const names = [textIn(error, 'status'), ...details.map((each) => textIn(each, 'reason'))]
    const perDay = details.flatMap(quotasOf).filter((quota) => /PerDay/i.test(quota))
    const isPerDay = perDay.length > 0
    // If a quota of all models is used up as well, another model does not help.
    if (isPerDay)
      names.push(perDay.every((quota) => /PerModel/i.test(quota)) ? PER_DAY_AND_MODEL : PER_DAY)
    // For a quota of a day, `RetryInfo` has the seconds after which the next request may be counted.
    const retryAfterMs = isPerDay ? untilMidnightMs(QUOTA_ZONE, wallMs) : retryDelayMs(details)
    return { status, names, message: textIn(error, 'message'), retryAfterMs }
  },
}

type Detail = Readonly<Record<string, unknown>>

/** `QuotaFailure` names the quota, such as `GenerateRequestsPerDayPerProjectPerModel-FreeTier`. */
function quotasOf({ violations, metadata }: Detail): string[] {
  const quotas = Array.isArray(violations) ? violations : []
  const names = quotas.map((each) => textIn(objectIn(each), 'quotaId'))
  return [...names, textIn(objectIn(metadata), 'quota_limit')]
}

/** `RetryInfo`: `"retryDelay": "34.07s"`. */
function retryDelayMs(details: readonly Detail[]): number | undefined {
  for (const detail of details) {
    const delay = textIn(detail, 'retryDelay')
    if (delay !== '') return readSpan(delay)
  }
  return undefined
}
