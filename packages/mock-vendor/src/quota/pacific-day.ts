/** Days in the time zone in which Google counts them. */
import { systemClock } from 'spillway/internal'

const TIME = new Intl.DateTimeFormat('en-US', {
  timeZone: 'America/Los_Angeles',
  hourCycle: 'h23',
  hour: '2-digit',
  minute: '2-digit',
  second: '2-digit',
})
const DAY_MS = 86_400_000

/**
 * End of the Pacific day that contains this time of the system clock. On days of 23 or 25 hours the result is an hour
 * off.
 */
export function endOfPacificDay(nowMs: number): number {
  const wallMs = nowMs + systemClock.wallMs() - systemClock.now()
  return nowMs + DAY_MS - sinceMidnightMs(wallMs)
}

/** Time since midnight in California. `wallMs`: since 1970. */
export function sinceMidnightMs(wallMs: number): number {
  const parts = TIME.formatToParts(wallMs)
  const [hour = 0, minute = 0, second = 0] = (['hour', 'minute', 'second'] as const).map((type) =>
    Number(parts.find((part) => part.type === type)?.value),
  )
  return ((hour * 60 + minute) * 60 + second) * 1_000 + (Math.floor(wallMs) % 1_000)
}
