/** The figures of a lane's limits, in milliseconds instead of store time. */
import type { LaneFigures } from '../../store/port.js'
import type { RateLimiterFigures } from './api.js'

export function figuresOf(read: LaneFigures): RateLimiterFigures {
  const { pausedUntilUs, nowUs, requestsLastMinute, limits } = read
  return {
    pausedMs: Math.max(0, pausedUntilUs - nowUs) / 1_000,
    requestsLastMinute,
    limits: limits.map(({ waitUs, ...limit }) => ({ ...limit, nextFreeMs: waitUs / 1_000 })),
  }
}
