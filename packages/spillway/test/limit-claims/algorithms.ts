/** Claims about each algorithm with many concurrent pods. */
import type { SharedLimit } from 'spillway/shared'
import { describe, expect } from 'vitest'
import { it } from '../concurrent-tests.js'
import {
  askTogether,
  createVendor,
  type Fleet,
  grantedMs,
  LONG_MS,
  permitOf,
  usedOf,
} from './fleet.js'

/** As the store counts: the window plus the jitter allowance, which a busy machine must not exceed. */
const WINDOW_MS = 1_100
const SHORT = { windowMs: 100, jitterMs: 1_000 }

export function claimAlgorithms(fleet: Fleet): void {
  /** The times at which the store granted `calls` concurrent calls of four pods. */
  async function grantTimes(limit: Partial<SharedLimit>, calls: number): Promise<number[]> {
    const { windowMs, jitterMs } = SHORT
    const pod = createVendor(fleet, { jitterMs, limits: [{ limit: 10, windowMs, ...limit }] })
    const pods = [pod(), pod(), pod(), pod()]
    // Connects first: a reply that comes late because of that would be refunded.
    await fleet.until(Promise.all(pods.map((each) => each.figures())))
    const pending = Array.from({ length: calls }, (_, call) =>
      pods[call % pods.length]!.acquireWithin('30s'),
    )
    const answers = await fleet.until(Promise.all(pending))
    return answers.map((answer) => grantedMs(permitOf(answer))).sort((a, b) => a - b)
  }

  describe.each([
    { algorithm: 'sliding-window', passes: 10 },
    { algorithm: 'token-bucket', passes: 10 },
    { algorithm: 'token-bucket', burst: 4, passes: 4 },
    { algorithm: 'leaky-bucket', passes: 1 },
    { algorithm: 'fixed-window', passes: 10 },
  ] as const)('$algorithm with $passes permits at once', ({ passes, ...limit }) => {
    it('limit grants exactly its capacity to forty concurrent pods and charges no refused call', async () => {
      const pod = createVendor(fleet, { limits: [{ limit: 10, windowMs: LONG_MS, ...limit }] })
      const answers = await askTogether(pod, 40)
      const refusals = answers.filter(({ allowed }) => !allowed)
      expect(refusals).toHaveLength(40 - passes)
      for (const refusal of refusals) {
        expect(refusal).toMatchObject({ paused: false, retryAfterMs: expect.any(Number) })
        expect(refusal).not.toMatchObject({ retryAfterMs: 0 })
      }
      expect(await usedOf(pod)).toEqual({ requests: passes })
    })
  })

  it('sliding window never grants more than its limit in any window', async () => {
    const atMs = await grantTimes({ algorithm: 'sliding-window' }, 40)
    for (let last = 10; last < atMs.length; last++) {
      expect(atMs[last]! - atMs[last - 10]!).toBeGreaterThanOrEqual(WINDOW_MS)
    }
  })

  it('token bucket grants a burst and then a steady rate', async () => {
    const atMs = await grantTimes({ algorithm: 'token-bucket', burst: 4 }, 16)
    const beatMs = WINDOW_MS / 10
    for (const [first, fromMs] of atMs.entries()) {
      for (let last = first; last < atMs.length; last++) {
        const passed = last - first + 1
        expect(passed).toBeLessThanOrEqual(4 + (atMs[last]! - fromMs) / beatMs)
      }
    }
  })

  it('leaky bucket keeps grants at least one interval apart', async () => {
    const atMs = await grantTimes({ algorithm: 'leaky-bucket' }, 8)
    for (let next = 1; next < atMs.length; next++) {
      expect(atMs[next]! - atMs[next - 1]!).toBeGreaterThanOrEqual(WINDOW_MS / 10)
    }
  })

  it('fixed window grants at most its limit from edge to edge', async () => {
    const atMs = await grantTimes({ algorithm: 'fixed-window' }, 25)
    const passed = new Map<number, number>()
    for (const ms of atMs) {
      const window = Math.floor(ms / WINDOW_MS)
      passed.set(window, (passed.get(window) ?? 0) + 1)
    }
    expect(passed.size).toBeGreaterThanOrEqual(3)
    for (const count of passed.values()) expect(count).toBeLessThanOrEqual(10)
  })
}
