/** Manual control of the breaker by operators. */
import { describe, expect } from 'vitest'
import { it } from '../concurrent-tests.js'
import type { Fleet } from '../limit-claims/fleet.js'
import {
  counted,
  createDownstream,
  enterTogether,
  halfOpen,
  LONG_MS,
  MARGIN_MS,
  report,
  SHORT_MS,
  untilKnown,
  untilState,
} from './fleet.js'

export function claimManualControl(fleet: Fleet): void {
  const threePods = async (options: Parameters<typeof createDownstream>[1] = {}) => {
    const pod = createDownstream(fleet, options)
    const pods = [pod(), pod(), pod()] as const
    await untilKnown(fleet, pods)
    return { pod, pods }
  }

  describe('isolated breaker', () => {
    it('an isolated breaker refuses every call on all pods and states the reason', async () => {
      const { pods } = await threePods()
      await pods[0].isolate(LONG_MS)
      expect(pods[0].state()).toBe('isolated')
      await untilState(fleet, pods, 'isolated')
      expect(await enterTogether(pods, 10)).toHaveLength(0)
      await expect(pods[1].run(() => 'called')).rejects.toMatchObject({
        code: 'CIRCUIT_OPEN',
        message: expect.stringContaining('isolated manually'),
        details: { state: 'isolated' },
      })
    })

    it('breaker stays isolated until every holder has released it', async () => {
      const { pods } = await threePods()
      await pods[0].isolate(LONG_MS)
      await pods[1].isolate(LONG_MS)
      await pods[0].release()
      expect(pods[0].state()).toBe('isolated')
      // A second isolation by the same holder counts once, and another holder releases nothing.
      await pods[0].release()
      await pods[1].isolate(LONG_MS)
      expect(pods[1].state()).toBe('isolated')
      await pods[2].isolate(LONG_MS, { holder: 'operator' })
      await pods[1].release()
      expect(pods[1].state()).toBe('isolated')
      await pods[0].release({ holder: 'operator' })
      expect(pods[0].state()).toBe('closed')
      await untilState(fleet, pods, 'closed')
    })

    it("isolation ends by itself with the last holder's time", async () => {
      const { pods } = await threePods()
      await pods[0].isolate(SHORT_MS)
      await pods[1].isolate(5 * SHORT_MS)
      await untilState(fleet, pods, 'isolated')
      await fleet.sleep(SHORT_MS + MARGIN_MS)
      expect(pods.map((pod) => pod.state())).toEqual(['isolated', 'isolated', 'isolated'])
      await untilState(fleet, pods, 'closed')
      expect(await enterTogether(pods)).toHaveLength(3)
    })

    it('an isolated breaker grants no probe and returns to its former state when released', async () => {
      const pods = await halfOpen(fleet, { probes: 3 }, 2)
      await pods[0]!.isolate(LONG_MS, { holder: 'operator' })
      await untilState(fleet, pods, 'isolated')
      expect(await enterTogether(pods, 3)).toHaveLength(0)
      await pods[1]!.release({ holder: 'operator' })
      await untilState(fleet, pods, 'half-open')
      await fleet.sleep(MARGIN_MS)
      expect(await enterTogether(pods, 3)).toHaveLength(3)
    })

    it('isolation applies to one lane only', async () => {
      const { pods } = await threePods()
      await pods[0].isolate(LONG_MS, { lane: 'large' })
      expect(pods[0].state({ lane: 'large' })).toBe('isolated')
      expect(pods[0].state({ lane: 'small' })).toBe('closed')
      expect(pods[0].state()).toBe('closed')
    })
  })

  it('trip() opens the breaker on all pods at once', async () => {
    const { pods } = await threePods({ openMs: LONG_MS })
    await pods[0].trip()
    expect(pods[0].state()).toBe('open')
    await untilState(fleet, pods, 'open')
  })

  it('reset() closes the breaker on all pods at once, without a ramp and with counts at zero', async () => {
    const { pod, pods } = await threePods({ openMs: LONG_MS, consecutiveFailures: 5, probes: 1 })
    await report(fleet, pods[0], 'failure', 5)
    await untilState(fleet, pods, 'open')
    await pods[1].reset()
    expect(pods[1].state()).toBe('closed')
    await untilState(fleet, pods, 'closed')
    expect(await enterTogether(pods, 10)).toHaveLength(30)
    expect(await counted(fleet, pod)).toMatchObject({ calls: 0, failures: 0 })
    await report(fleet, pods[0], 'failure', 4)
    expect(pods[0].state()).toBe('closed')
  })

  it('reset() ends no isolation', async () => {
    const { pods } = await threePods()
    await pods[0].isolate(LONG_MS)
    await pods[0].trip()
    await pods[0].reset()
    expect(pods[0].state()).toBe('isolated')
    await pods[0].release()
    expect(pods[0].state()).toBe('closed')
  })
}
