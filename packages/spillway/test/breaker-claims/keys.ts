/** Keys that remain on the server after the tests expire soon. */
import { describe, expect } from 'vitest'
import { it } from '../concurrent-tests.js'
import type { Fleet } from '../limit-claims/fleet.js'
import { createDownstream, report, untilKnown } from './fleet.js'

const LONGEST_MS = 300_000
/** Keys live one second longer than their content is needed. */
const MARGIN_MS = 1_001
const HOUR_MS = 3_600_000

export function claimKeys(fleet: Fleet): void {
  if (fleet.kind === 'memory') return

  /** All keys with their remaining lifetime in milliseconds. */
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

  // These two inspect the keys of all the tests before them.
  describe.sequential('breaker keys', () => {
    it('every breaker key contains one hash tag, that of its downstream', async () => {
      const keys = await allKeys()
      expect(keys.length).toBeGreaterThan(50)
      for (const [key] of keys) expect(key).toMatch(/^sw1:\{[^{}]+\}:[^{}]+$/)
    })

    it('every breaker key expires within five minutes or twice the open time', async () => {
      for (const [key, leftMs] of await allKeys()) {
        expect(leftMs, key).toBeGreaterThanOrEqual(0)
        expect(leftMs, key).toBeLessThanOrEqual(LONGEST_MS + MARGIN_MS)
      }
    })
  })

  describe('keys of one breaker', () => {
    it('keys of an open breaker live as long as the open time and at most twice that', async () => {
      const pod = createDownstream(fleet, { consecutiveFailures: 1, openMs: HOUR_MS })()
      await report(fleet, pod, 'failure')
      const keys = await keysOf(pod.name)
      const longest = Math.max(...keys.map(([, leftMs]) => leftMs))
      expect(longest).toBeGreaterThan(HOUR_MS - 60_000)
      expect(longest).toBeLessThanOrEqual(2 * HOUR_MS + MARGIN_MS)
    })

    it('pods that only read the state write no breaker key', async () => {
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

    it('keys of an isolated breaker live until it is released', async () => {
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
