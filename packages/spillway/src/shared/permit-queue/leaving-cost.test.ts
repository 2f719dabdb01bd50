/** The cost of leaving a long queue, counted in operations on the queue and the store. */
import { describe, expect, it } from 'vitest'
import { createSpillway } from '../../guard/spillway.js'
import { memoryStore } from '../../store/memory/memory-store.js'
import type { Store } from '../../store/port.js'
import { createVirtualClock } from '../../testing/virtual-clock.js'
import { CallDeque } from './deque.js'
import type { QueuedCall } from './queued-call.js'

type CostOf = (index: number) => { tokens: number }

/** Counts reads of `state` of queued calls (each look at one), and store requests. */
async function countLeaving(
  calls: number,
  costOf: CostOf,
  abortAll: (aborts: readonly AbortController[]) => Promise<void> | void,
): Promise<number> {
  const clock = createVirtualClock()
  const near = memoryStore({ clock })
  let operations = 0
  const store: Store = {
    ...near,
    limits: {
      ...near.limits,
      take(request) {
        operations += 1 + request.costs.length
        return near.limits.take(request)
      },
    },
  }
  const spillway = createSpillway({ store, clock })
  const guard = spillway.guard('vendor', {
    limits: [{ unit: 'tokens', limit: 10_000, windowMs: '1h' }],
    queue: { size: calls, timeoutMs: '2h' },
  })
  await guard.run(async () => {}, { cost: { tokens: 10_000 } })
  const aborts = Array.from({ length: calls }, () => new AbortController())
  const waiting = aborts.map(({ signal }, index) =>
    guard.run(async () => {}, { signal, cost: costOf(index) }).catch((error) => error),
  )
  const listed = countLooks()
  operations = 0
  try {
    await abortAll(aborts)
  } finally {
    listed.stop()
  }
  expect(guard.snapshot().queue.waiting).toBe(0)
  await Promise.all(waiting)
  await spillway.close()
  return operations + listed.count
}

/** Counts the calls that a deque copies or shifts while others leave. */
function countLooks(): { readonly count: number; stop(): void } {
  const { list, insert } = CallDeque.prototype
  let count = 0
  CallDeque.prototype.list = function (this: CallDeque) {
    count += this.places
    return list.call(this)
  }
  CallDeque.prototype.insert = function (this: CallDeque, call: QueuedCall) {
    const before = this.first
    insert.call(this, call)
    // A call that goes to either end costs one step; further in it costs up to the whole length.
    count += this.last === call || this.first === call || before === undefined ? 1 : this.places
  }
  return {
    get count() {
      return count
    },
    stop() {
      Object.assign(CallDeque.prototype, { list, insert })
    },
  }
}

const inOneTurn = (aborts: readonly AbortController[]) => {
  for (const abort of aborts) abort.abort(new Error('left'))
}
const oneByOne = async (aborts: readonly AbortController[]) => {
  for (const abort of aborts) {
    abort.abort(new Error('left'))
    await Promise.resolve()
  }
}
const shuffled = (aborts: readonly AbortController[]) => {
  const rest = [...aborts]
  for (let seed = 1; rest.length > 0; seed = (seed * 48_271) % 2_147_483_647) {
    rest.splice(seed % rest.length, 1)[0]?.abort(new Error('left'))
  }
}

describe('leaving a long queue', () => {
  const COSTS: Record<string, CostOf> = {
    'equal costs': () => ({ tokens: 5 }),
    'rising costs': (index) => ({ tokens: 5 + index }),
    'alternating costs': (index) => ({ tokens: index % 2 === 0 ? 500 : 5 }),
  }
  const ORDERS = { 'in one turn': inOneTurn, 'one by one': oneByOne, 'in random order': shuffled }

  for (const [costs, costOf] of Object.entries(COSTS)) {
    for (const [order, abortAll] of Object.entries(ORDERS)) {
      it(`aborting four times as many queued calls with ${costs} ${order} costs at most six times as much`, async () => {
        const few = await countLeaving(500, costOf, abortAll)
        const many = await countLeaving(2_000, costOf, abortAll)
        expect(many).toBeLessThanOrEqual(6 * few + 2_000)
      })
    }
  }

  it('aborting 8,000 queued calls that wait for a limit makes no store request per call', async () => {
    const operations = await countLeaving(8_000, () => ({ tokens: 5 }), inOneTurn)
    expect(operations).toBeLessThan(8_000)
  })
})
