import type { Clock } from '../../core/time/clock.js'

/** `atMs`: a time just read from the same clock, so that it need not be read again. */
export type Microseconds = (atMs?: number) => number

/** The store's time: the time of day at the start, and from there on a clock that never goes back. */
export function createMicroseconds(clock: Clock): Microseconds {
  const startMs = clock.now()
  const startUs = Math.floor(clock.wallMs()) * 1_000
  return (atMs = clock.now()) => startUs + Math.floor((atMs - startMs) * 1_000)
}
