/**
 * The same pod with Spillway: no more calls at once than the vendor handles well, a short queue in
 * front, retries only within a budget, and no work for clients that have disconnected.
 */
import { createDeadline, runWithDeadline } from 'spillway'
import { createBulkhead, createRetry, createRetryBudget, createTimeout } from 'spillway/local'
import type { Pod, PodOptions } from './pod.js'

export function createProtectedPod({ vendor, clock, random }: PodOptions): Pod {
  const bulkhead = createBulkhead({
    name: 'vendor',
    limit: 20,
    queue: { size: 20, timeoutMs: 300 },
    clock,
  })
  const timeout = createTimeout({ name: 'vendor', callMs: 500, clock })
  const budget = createRetryBudget({
    ratio: 0.2,
    conditions: () => ({ slotsInUse: bulkhead.active / bulkhead.limit }),
    clock,
  })
  const retry = createRetry({ attempts: 4, baseMs: 50, budget, clock, random })

  function callVendor(): Promise<string> {
    return retry.run(() => bulkhead.run(() => timeout.run(({ signal }) => vendor.call(signal))))
  }

  return {
    handle: (patienceMs) => runWithDeadline(createDeadline(patienceMs, clock), callVendor),
    get waiting() {
      return bulkhead.waiting
    },
  }
}
