/** How a caller's limits stand once a request was charged on them, and the error for one that was not. */
import { type Details, inMs, SpillwayError } from '../core/errors.js'
import type { UserRequest } from '../shared/user-limits/levels.js'
import type { LevelReply } from '../store/port.js'
import type { UserStanding } from './run-options.js'

export function standingOf({ levels }: UserRequest, reply: LevelReply): UserStanding {
  const charge = levels[reply.tightest - 1]
  return {
    level: charge?.per ?? 'user',
    limit: charge?.limit ?? 0,
    windowMs: (charge?.windowUs ?? 0) / 1_000,
    remaining: reply.remaining,
    resetMs: reply.resetUs / 1_000,
  }
}

export function userLimitedError(
  name: string,
  request: UserRequest,
  reply: LevelReply,
  alone: boolean,
): SpillwayError {
  const retryAfterMs = reply.waitUs / 1_000
  const { level, limit, windowMs, remaining } = standingOf(request, reply)
  return new SpillwayError({
    code: 'USER_LIMITED',
    stage: 'user-limit',
    scope: alone ? 'local' : 'shared',
    retryAfterMs,
    details: { name, level, limit, windowMs, remaining, retryAfterMs },
    explain: alone ? explainAlone : explainLimited,
  })
}

function explainLimited({ name, level, retryAfterMs }: Details): string {
  return `${name}: the limit per ${level} is used up for ${inMs(retryAfterMs)}`
}

function explainAlone(details: Details): string {
  return `${explainLimited(details)}, as far as this pod can tell: the store is away`
}
