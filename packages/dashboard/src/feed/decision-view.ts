/** A decision as the page gets it. */

import type { DecisionRecord, PathNote } from 'spillway/internal'
import { PRIORITIES } from 'spillway/internal'
import { remedyFor } from '../remedy.js'
import { rounded, shown, shownNumbers, spokenIn } from '../shown.js'
import type { Decision, StageNote } from '../wire/decisions.js'

const MOST_NOTES = 40

/** `pod`: as it is shown. `aheadMs`: offset from the pod's clock to the time of day. */
export function decisionView(record: DecisionRecord, pod: string, aheadMs: number): Decision {
  const { id, user, tier, code, stage, scope, attempts, retryAfterMs, details } = record
  const refused = code !== 'OK' && code !== 'DEGRADED' && code !== 'FAILED' && code !== 'ABORTED'
  const { sharedAgeMs } = record
  return {
    id,
    pod,
    at: Math.round(record.arrivedMs + aheadMs),
    guard: shown(record.guard),
    lane: shown(record.lane),
    ...(user !== undefined && { user: shown(String(user)) }),
    ...(tier !== undefined && { tier: shown(String(tier)) }),
    priority: PRIORITIES[record.importance] ?? 'normal',
    code,
    stage,
    scope,
    tookMs: rounded(record.tookMs),
    attempts,
    ...(retryAfterMs !== undefined && { retryAfterMs: Math.ceil(retryAfterMs) }),
    why: shown(spokenIn(record.why)),
    ...(refused && { remedy: shown(remedyFor(code, { stage, details, retryAfterMs })) }),
    numbers: shownNumbers(details),
    ...(sharedAgeMs !== undefined && { sharedAgeMs: Math.round(sharedAgeMs) }),
    path: record.path.slice(-MOST_NOTES).map(noteView),
    traced: record.traced,
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
