/** Job queues, as stored. */
import type { SpillwayInternals } from 'spillway/internal'
import { inOrder, shown, shownLane } from '../shown.js'
import type { DeadLetters, QueueTick } from '../wire/queues.js'

type Queue = ReturnType<SpillwayInternals['queues']>[number]
const MOST_QUEUES = 50
const MOST_TENANTS = 8

/** Nothing is reported while the store does not answer. */
export async function queueTicks(queues: readonly Queue[]): Promise<QueueTick[]> {
  const ticks = await Promise.allSettled(queues.slice(0, MOST_QUEUES).map(queueTick))
  return ticks.flatMap((each) => (each.status === 'fulfilled' ? [each.value] : []))
}

async function queueTick({ name, guard, queue }: Queue): Promise<QueueTick> {
  const { tenants, ...counts } = await queue.counts({ tenants: MOST_TENANTS })
  const { top = [], others = 0, exact = true } = tenants ?? {}
  return {
    ...counts,
    name: shown(name),
    guard: shown(guard),
    lane: shownLane(queue.snapshot().lane),
    oldestMs: Math.round(counts.oldestMs),
    byPriority: inOrder(counts.byPriority),
    byTenant: {
      top: top.map(({ tenant = '', waiting, byPriority }) => ({
        tenant: shown(tenant),
        waiting,
        byPriority: inOrder(byPriority),
      })),
      others,
      othersWaiting: Math.max(0, counts.waiting - sumOf(top)),
      exact,
    },
  }
}

function sumOf(top: readonly { waiting: number }[]): number {
  return top.reduce((sum, { waiting }) => sum + waiting, 0)
}

const MOST_LETTERS = 100

/** Job data and handler errors are left out, because they may contain secrets. */
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
