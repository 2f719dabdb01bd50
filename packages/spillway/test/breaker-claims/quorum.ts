/** One failing pod does not mean a failing downstream. */
import { onEvent } from 'spillway'
import type { CircuitBreaker } from 'spillway/shared'
import { describe, expect } from 'vitest'
import { it, onTestFinished } from '../concurrent-tests.js'
import type { Fleet } from '../limit-claims/fleet.js'
import { createDownstream, LONG_MS, untilKnown, untilState } from './fleet.js'

export function claimQuorum(fleet: Fleet): void {
  const fail = () => {
    throw new Error('failed')
  }
  const call = async (pod: CircuitBreaker, fn: () => unknown, times: number) => {
    for (let time = 0; time < times; time++) await pod.run(fn).catch(() => {})
    await fleet.until(pod.flush())
  }
  const eight = async (options: Parameters<typeof createDownstream>[1]) => {
    const pod = createDownstream(fleet, { quorum: 2, openMs: LONG_MS, ...options })
    const pods = Array.from({ length: 8 }, () => pod())
    await untilKnown(fleet, pods)
    // Heartbeats are sent in the background.
    await fleet.sleep(50)
    return pods
  }

  describe.each([
    ['failure rate', { failureRate: 0.5, minimumCalls: 10 }],
    ['consecutive failures', { consecutiveFailures: 10 }],
  ])('breaker quorum on %s', (_, options) => {
    it('with a quorum, one failing pod isolates only itself', async () => {
      const pods = await eight(options)
      const events: unknown[] = []
      onTestFinished(
        onEvent((event) => {
          if (event.name === pods[0]!.name) events.push(event.type)
        }),
      )
      const [sick, ...others] = pods
      for (let round = 0; round < 3; round++) {
        await call(sick!, fail, 10)
        for (const pod of others) await call(pod, () => 'fine', 1)
      }
      expect(sick!.snapshot()).toMatchObject({ state: 'closed', selfIsolated: true })
      await expect(sick!.run(() => 'called')).rejects.toMatchObject({ code: 'CIRCUIT_OPEN' })
      expect(events).toContain('breaker.self-isolated')
      expect(events).not.toContain('breaker.opened')
      for (const pod of others) {
        expect(pod.snapshot()).toMatchObject({ state: 'closed', selfIsolated: false })
        expect(await pod.run(() => 'fine')).toBe('fine')
      }
    })

    it('with a quorum, half of the pods open the breaker for all', async () => {
      const pods = await eight(options)
      for (const pod of pods.slice(4)) await call(pod, () => 'fine', 10)
      for (const pod of pods.slice(0, 3)) {
        await call(pod, fail, 10)
        await call(pods[7]!, () => 'fine', 1)
      }
      expect(pods[2]!.state()).toBe('closed')
      await call(pods[3]!, fail, 10)
      await untilState(fleet, pods, 'open')
      // A decision of the fleet resets the self-isolation of each pod.
      expect(pods.map((pod) => pod.snapshot().selfIsolated)).toEqual(Array(8).fill(false))
    })
  })

  it('a single pod fulfils any quorum', async () => {
    const pod = createDownstream(fleet, { quorum: 3, consecutiveFailures: 5, openMs: LONG_MS })()
    await untilKnown(fleet, [pod])
    await call(pod, fail, 5)
    expect(pod.state()).toBe('open')
  })
}
