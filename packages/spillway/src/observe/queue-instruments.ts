/**
 * Metrics of job queues. Depths are read from the store, for the fleet; counters are those of this
 * pod.
 */
import type { FleetJobQueueReport, JobQueueSnapshot } from '../guard/jobs/queue-snapshot.js'
import type { Instrument, Row } from './instrument.js'
import type { View } from './source.js'

const OUTCOMES = ['done', 'retried', 'dead', 'released', 'cancelled', 'lost'] as const

export const QUEUE_INSTRUMENTS: readonly Instrument[] = [
  {
    name: 'spillway_jobs_added_total',
    dotted: 'spillway.jobs.added',
    unit: '{job}',
    help: 'Jobs that this pod added to a queue.',
    kind: 'counter',
    labels: ['guard', 'queue'],
    read: (view) => ofPod(view, ({ added }) => [[{}, added]]),
  },
  {
    name: 'spillway_jobs_refused_total',
    dotted: 'spillway.jobs.refused',
    unit: '{job}',
    help: 'Jobs of this pod that found their queue full.',
    kind: 'counter',
    labels: ['guard', 'queue'],
    read: (view) => ofPod(view, ({ refused }) => [[{}, refused]]),
  },
  {
    name: 'spillway_jobs_total',
    dotted: 'spillway.jobs.turns',
    unit: '{job}',
    help: 'Turns of jobs in this pod, by outcome.',
    kind: 'counter',
    labels: ['guard', 'queue', 'outcome'],
    read: (view) =>
      ofPod(view, (queue) => OUTCOMES.map((outcome): Row => [{ outcome }, queue[outcome]])),
  },
  {
    name: 'spillway_jobs_waiting',
    dotted: 'spillway.jobs.waiting',
    unit: '{job}',
    help: 'Jobs of a queue that could be handed out, by priority, for the whole fleet.',
    kind: 'gauge',
    labels: ['guard', 'queue', 'priority'],
    read: (view) =>
      ofFleet(view, ({ byPriority }) =>
        Object.entries(byPriority).map(([priority, count]): Row => [{ priority }, count]),
      ),
  },
  {
    name: 'spillway_jobs_by_state',
    dotted: 'spillway.jobs.by_state',
    unit: '{job}',
    help: 'Jobs of a queue that are delayed, run, or are dead letters, for the whole fleet.',
    kind: 'gauge',
    labels: ['guard', 'queue', 'state'],
    read: (view) =>
      ofFleet(view, ({ delayed, active, dead }) => [
        [{ state: 'delayed' }, delayed],
        [{ state: 'active' }, active],
        [{ state: 'dead' }, dead],
      ]),
  },
  {
    name: 'spillway_jobs_oldest_seconds',
    dotted: 'spillway.jobs.oldest',
    unit: 's',
    help: 'Age of the oldest job of those that are next in their priority.',
    kind: 'gauge',
    labels: ['guard', 'queue'],
    read: (view) => ofFleet(view, ({ oldestMs }) => [[{}, oldestMs / 1_000]]),
  },
  {
    name: 'spillway_jobs_paused',
    dotted: 'spillway.jobs.paused',
    unit: '1',
    help: 'One while a queue is paused by hand.',
    kind: 'gauge',
    labels: ['guard', 'queue'],
    read: (view) => ofFleet(view, ({ paused }) => [[{}, paused ? 1 : 0]]),
  },
  {
    name: 'spillway_jobs_expired_leases',
    dotted: 'spillway.jobs.expired_leases',
    unit: '{job}',
    help: 'Leases of a queue that expired, in the whole fleet. Those jobs ran again or became dead letters.',
    kind: 'gauge',
    labels: ['guard', 'queue'],
    read: (view) => ofFleet(view, ({ expiredLeases }) => [[{}, expiredLeases]]),
  },
]

function ofPod({ snapshot, guardLabel }: View, rows: (queue: JobQueueSnapshot) => readonly Row[]) {
  return rowsOf(snapshot.jobQueues, guardLabel, rows)
}

function ofFleet(
  { fleet, guardLabel }: View,
  rows: (queue: FleetJobQueueReport) => readonly Row[],
) {
  return rowsOf(fleet.jobQueues, guardLabel, rows)
}

function* rowsOf<Q extends { name: string; guard: string }>(
  queues: readonly Q[],
  guardLabel: string,
  rows: (queue: Q) => readonly Row[],
): Iterable<Row> {
  for (const queue of queues) {
    const own = { [guardLabel]: queue.guard, queue: queue.name }
    for (const [labels, value] of rows(queue)) yield [{ ...own, ...labels }, value]
  }
}
