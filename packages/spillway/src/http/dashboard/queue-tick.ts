/** Job queues, by the store's word. */
import { PRIORITIES, type Priority } from '../../core/priority.js'
import type { SpillwayInside } from '../../guard/inside.js'
import type { JobCounts } from '../../shared/job-queue/api.js'
import { shown } from './shown.js'
import type { DeadLetters, QueueTick } from './wire.js'

type Queue = ReturnType<SpillwayInside['queues']>[number]
const MOST_QUEUES = 50

/** Of a store that does not answer nothing is told. */
export async function queueTicks(queues: readonly Queue[]): Promise<QueueTick[]> {
  const ticks = await Promise.allSettled(queues.slice(0, MOST_QUEUES).map(queueTick))
  return ticks.flatMap((each) => (each.status === 'fulfilled' ? [each.value] : []))
}

async function queueTick({ name, guard, queue }: Queue): Promise<QueueTick> {
  const counts = (await queue.counts()) as JobCounts & { byPriority?: Record<Priority, number> }
  const { waiting, delayed, active, done, dead, paused, oldestMs, lapsed, byPriority } = counts
  return {
    name: shown(name),
    guard: shown(guard),
    waiting,
    delayed,
    active,
    done,
    dead,
    paused,
    oldestMs: Math.round(oldestMs),
    lapsed,
    ...(byPriority !== undefined && {
      byPriority: PRIORITIES.map((each) => byPriority[each] ?? 0) as QueueTick['byPriority'] &
        object,
    }),
  }
}

const MOST_LETTERS = 100

/** Nothing of what is in them, nor of what their handler said: that may be anything. */
export async function deadLetters(
  { name, queue }: Queue,
  from: number,
  count: number,
): Promise<DeadLetters> {
  const letters = await queue.dead({ from, count: Math.min(MOST_LETTERS, count) })
  return {
    queue: shown(name),
    from,
    letters: letters.map(({ id, priority, tenant, attempt, attempts, ageMs }) => ({
      id,
      priority,
      ...(tenant !== undefined && { tenant: shown(tenant) }),
      attempt,
      attempts,
      ageMs: Math.round(ageMs),
    })),
  }
}
