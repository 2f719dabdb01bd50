/** The duration histograms that are exported, and of which guards. */
import type { Durations } from '../core/collections/histogram.js'
import type { Labels } from './instrument.js'
import type { View } from './source.js'

/** Most guards with a histogram, because each has a series for every bound. */
const MOST_TIMED = 100

export interface Timed {
  readonly name: string
  readonly dotted: string
  readonly help: string
  /** As of an `Instrument`, besides `le`. */
  readonly labels: readonly string[]
  read(view: View): { labels: Labels; durations: Durations }[]
}

export const TIMED: readonly Timed[] = [
  {
    name: 'spillway_queue_wait_seconds',
    dotted: 'spillway.queue.wait',
    help: 'From a call’s arrival until its first attempt begins.',
    labels: ['guard'],
    read: ({ timings, guardLabel }) =>
      timings
        .slice(0, MOST_TIMED)
        .map(({ name, queueWait }) => ({ labels: { [guardLabel]: name }, durations: queueWait })),
  },
  {
    name: 'spillway_attempt_seconds',
    dotted: 'spillway.attempt.duration',
    help: 'How long attempts took, to the end of a streamed answer.',
    labels: ['guard', 'attempt'],
    read: ({ timings, guardLabel }) =>
      timings.slice(0, MOST_TIMED).flatMap(({ name, attempts }) =>
        attempts.map(({ attempt, durations }) => ({
          labels: { [guardLabel]: name, attempt },
          durations,
        })),
      ),
  },
]
