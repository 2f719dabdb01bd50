/** What is left on the server when all of this is over: nothing, before long. */
import { describe, expect, it } from 'vitest'
import type { Fleet } from '../limit-claims/fleet.js'
import { createDownstream, report, untilKnown } from './fleet.js'

const LONGEST_MS = 300_000
/** Everything lives a second longer than it means something. */
const MARGIN_MS = 1_001
const HOUR_MS = 3_600_000

export function claimKeys(fleet: Fleet): void {
  if (fleet.kind === 'memory') return

  describe('keys', () => {
    /** Every key there is, with the milliseconds it has left. */
    const allKeys = async () => {
      const script = `
        local found = {}
        for _, key in ipairs(redis.call('KEYS', '*')) do
          found[#found + 1] = { key, redis.call('PTTL', key) }
        end
        return found`
      const found = await fleet.everywhere('EVAL', script, '0')
      return found.flat() as [key: string, leftMs: number][]
    }
    const keysOf = async (name: string) =>
      (await allKeys()).filter(([key]) => key.includes(`{${name}}`))

    it('hold one hash tag, the downstream’s', async () => {
      const keys = await allKeys()
      expect(keys.length).toBeGreaterThan(50)
      for (const [key] of keys) expect(key).toMatch(/^sw1:\{[^{}]+\}:[^{}]+$/)
    })

    it('all end, within five minutes or twice the time a breaker is open', async () => {
      for (const [key, leftMs] of await allKeys()) {
        expect(leftMs, key).toBeGreaterThanOrEqual(0)
        expect(leftMs, key).toBeLessThanOrEqual(LONGEST_MS + MARGIN_MS)
      }
    })

    it('of a breaker that is open for long last as long, and at most twice', async () => {
      const pod = createDownstream(fleet, { consecutiveFailures: 1, openMs: HOUR_MS })()
      await report(fleet, pod, 'failure')
      const keys = await keysOf(pod.name)
      const longest = Math.max(...keys.map(([, leftMs]) => leftMs))
      expect(longest).toBeGreaterThan(HOUR_MS - 60_000)
      expect(longest).toBeLessThanOrEqual(2 * HOUR_MS + MARGIN_MS)
    })

    it('are not written by pods that only look', async () => {
      const pod = createDownstream(fleet, {})
      const pods = [pod(), pod()]
      await untilKnown(fleet, pods)
      await fleet.sleep(1_200)
      const epochOnly = await keysOf(pods[0]!.name)
      expect(epochOnly.map(([key]) => key.split('}:')[1])).toEqual(['e'])
      await report(fleet, pods[0]!, 'success')
      const lives = async () =>
        (await keysOf(pods[0]!.name)).flatMap(([key, leftMs]) =>
          key.endsWith('}:e') ? [] : leftMs,
        )
      const before = Math.min(...(await lives()))
      await fleet.sleep(1_200)
      expect(Math.min(...(await lives()))).toBeLessThanOrEqual(before - 1_200)
    })

    it('of a breaker that is isolated last until it is released', async () => {
      const pod = createDownstream(fleet, {})()
      await pod.isolate(HOUR_MS)
      const longest = async () => Math.max(...(await keysOf(pod.name)).map(([, leftMs]) => leftMs))
      expect(await longest()).toBeGreaterThan(HOUR_MS - 60_000)
      expect(await longest()).toBeLessThanOrEqual(HOUR_MS + MARGIN_MS)
      await pod.release()
      expect(await longest()).toBeLessThanOrEqual(LONGEST_MS + MARGIN_MS)
    })
  })
}
