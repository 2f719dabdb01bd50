import { describe, expect, it } from 'vitest'
import { fc } from '../../../test/fast-check.js'
import { sleep } from '../../core/time/sleep.js'
import { createVirtualClock } from '../../testing/virtual-clock.js'
import { createTimeout } from '../timeout/timeout.js'
import { createBulkhead } from './bulkhead.js'

const call = fc.record({
  atMs: fc.nat(60),
  workMs: fc.nat(40),
  ends: fc.constantFrom('value', 'error', 'throw'),
  /** The timeout of the call, which its work ignores; undefined for none. */
  callMs: fc.option(fc.integer({ min: 1, max: 30 }), { nil: undefined }),
  abortAfterMs: fc.option(fc.nat(40), { nil: undefined }),
})

describe('bulkhead under random calls, errors, timeouts and aborts', () => {
  it('bulkhead never exceeds its limit, settles every call once and leaks nothing', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(call, { maxLength: 40 }),
        fc.integer({ min: 1, max: 4 }),
        fc.nat(5),
        fc.option(fc.nat(100), { nil: undefined }),
        async (calls, limit, size, closeAtMs) => {
          const clock = createVirtualClock()
          const queue = { size, timeoutMs: 25 }
          const bulkhead = createBulkhead({ limit, queue, graceMs: 10_000, clock })
          let running = 0
          let settled = 0

          const run = async (plan: (typeof calls)[number]) => {
            await sleep(clock, plan.atMs)
            const abort = new AbortController()
            const { signal } = abort
            if (plan.abortAfterMs !== undefined) {
              clock.schedule(plan.abortAfterMs, () => abort.abort())
            }
            const work = async () => {
              running++
              expect(running).toBeLessThanOrEqual(limit)
              await sleep(clock, plan.workMs)
              running--
              if (plan.ends === 'error') throw new Error('vendor')
            }
            const start = () => {
              if (plan.ends === 'throw') throw new Error('bug')
              const { callMs } = plan
              return callMs ? createTimeout({ callMs, clock }).run(work, { signal }) : work()
            }
            await bulkhead.run(start, { signal }).then(
              () => settled++,
              () => settled++,
            )
          }

          const all = Promise.all(calls.map(run))
          if (closeAtMs !== undefined) clock.schedule(closeAtMs, () => void bulkhead.close())
          await clock.until(all)
          await clock.drain()
          expect(settled).toBe(calls.length)
          expect(bulkhead.active).toBe(0)
          expect(bulkhead.waiting).toBe(0)
          expect(running).toBe(0)
          await bulkhead.close()
          expect(clock.pending).toBe(0)
        },
      ),
      { numRuns: 300 },
    )
  })
})
