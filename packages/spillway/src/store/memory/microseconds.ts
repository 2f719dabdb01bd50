import type { Clock } from '../../core/time/clock.js'

/** `atMs`: a time just read from the same clock, to save a second reading. */
export type Microseconds = (atMs?: number) => number

/** The store's time: the time of day at the start, then a monotonic clock. */
export function createMicroseconds(clock: Clock): Microseconds {
  const startMs = clock.now()
  const startUs = Math.floor(clock.wallMs()) * 1_000
  return (atMs = clock.now()) => startUs + Math.floor((atMs - startMs) * 1_000)
}
