/** A decision as the page gets it. */

import type { DecisionRecord, PathNote, ReplacedCall } from 'spillway/internal'
import { PRIORITIES } from 'spillway/internal'
import { remedyFor } from '../remedy.js'
import { requestIdOf, rounded, shown, shownNumbers, withReadableTimes } from '../shown.js'
import type { Decision, Requested, StageNote } from '../wire/decisions.js'

const MOST_NOTES = 40

/** `pod`: shortened name. `aheadMs`: offset from the pod's clock to the time of day. */
export function decisionView(record: DecisionRecord, pod: string, aheadMs: number): Decision {
  const { id, user, tier, code, stage, scope, attempts, retryAfterMs, details, status } = record
  const { sharedAgeMs, replaces } = record
  const requestId = record.requestId && requestIdOf(record.requestId)
  const at = Math.round(record.arrivedMs + aheadMs)
  const requested = requestedOf(record, at)
  const remedy = remedyFor(code, { stage, details, retryAfterMs })
  return {
    id,
    pod,
    at,
    ...(requestId && { requestId }),
    guard: shown(record.guard),
    lane: shown(record.lane),
    ...(user !== undefined && { user: shown(String(user)) }),
    ...(tier !== undefined && { tier: shown(String(tier)) }),
    priority: PRIORITIES[record.importance] ?? 'normal',
    code,
    ...(status !== undefined && { status }),
    ...(replaces !== undefined && { replaces: replacedView(replaces) }),
    ...(requested !== undefined && { requested }),
    stage,
    scope,
    tookMs: rounded(record.tookMs),
    attempts,
    ...(retryAfterMs !== undefined && { retryAfterMs: Math.ceil(retryAfterMs) }),
    why: shown(withReadableTimes(record.why)),
    ...(remedy !== undefined && { remedy: shown(remedy) }),
    numbers: shownNumbers(details),
    ...(sharedAgeMs !== undefined && { sharedAgeMs: Math.round(sharedAgeMs) }),
    path: record.path.slice(-MOST_NOTES).map(noteView),
    traced: record.traced,
  }
}

function replacedView({ guard, lane, code, status }: ReplacedCall) {
  return {
    guard: shown(guard),
    ...(lane !== undefined && { lane: shown(lane) }),
    code,
    ...(status !== undefined && { status }),
  }
}

/** Units that a call requested of the limit that refused it. User limits count one request per call. */
function requestedOf(
  { code, details, tookMs, retryAfterMs }: DecisionRecord,
  at: number,
): Requested | undefined {
  if (code !== 'VENDOR_LIMITED' && code !== 'USER_LIMITED') return undefined
  const isUser = code === 'USER_LIMITED'
  const { unit = isUser ? 'requests' : undefined, requested = isUser ? 1 : undefined } = details
  const { limit, left = isUser ? details.remaining : undefined } = details
  const isKnown = [requested, left, limit].every((each) => typeof each === 'number')
  if (unit === undefined || !isKnown) return undefined
  return {
    unit: shown(String(unit)),
    requested: rounded(Number(requested)),
    left: rounded(Number(left)),
    limit: rounded(Number(limit)),
    ...(retryAfterMs !== undefined && { untilAt: Math.round(at + tookMs + retryAfterMs) }),
  }
}

function noteView({ stage, attempt, atMs, verdict, scope, numbers }: PathNote): StageNote {
  return {
    stage,
    attempt,
    ...(atMs !== undefined && { atMs: rounded(Math.max(0, atMs)) }),
    verdict,
    scope,
    ...(numbers !== undefined && { numbers: shownNumbers(numbers) }),
  }
}
