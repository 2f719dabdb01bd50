/** Keys: names never collide and every key expires. */
import { describe, expect } from 'vitest'
import { it } from '../concurrent-tests.js'
import { createVendor, type Fleet, JITTER_MS, LONG_MS, passing, take } from './fleet.js'

const NAMES = [
  'a',
  'a:b',
  'a:b:c',
  '{a}',
  'a{b}',
  'a}b{',
  '{',
  '}',
  '{}',
  ':',
  'a b',
  'a  b',
  'a%20b',
  '%7b',
  'a\nb',
  'l:a',
  'default',
  'ü漢😀',
]

const DAY_MS = 86_400_000
const SEQUENCE_MS = 600_000
const REPORTS_MS = 120_000
const EPOCH_MS = 300_000
/** Keys live one second longer than their content is needed. */
const MARGIN_MS = 1_001

export function claimKeys(fleet: Fleet): void {
  describe('guard and lane names', () => {
    it('limits with different guard or lane names never share a key', async () => {
      const limits = [{ limit: 1, windowMs: LONG_MS }]
      const pods = NAMES.map((name) => createVendor(fleet, { name, limits }))
      for (const pod of pods) {
        for (const lane of NAMES) expect(await passing(pod, 1, { lane })).toBe(1)
      }
      for (const pod of pods) {
        for (const lane of NAMES) expect(await passing(pod, 1, { lane })).toBe(0)
      }
    })

    it('lane names that differ only in white space are separate', async () => {
      const limits = [{ limit: 1, windowMs: LONG_MS }]
      const lanes = ['x 03', 'x\u2003']
      const pod = createVendor(fleet, { limits })
      for (const lane of lanes) expect(await passing(pod, 1, { lane })).toBe(1)
    })
  })

  if (fleet.kind === 'memory') return

  describe.sequential('limit keys', () => {
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

    it('every limit key contains one hash tag, that of its vendor', async () => {
      const keys = await allKeys()
      expect(keys.length).toBeGreaterThan(NAMES.length)
      for (const [key] of keys) expect(key).toMatch(/^sw1:\{[^{}]+\}:[^{}]+$/)
    })

    it('a key lives as long as the longest window of any release needs it', async () => {
      const short = { unit: 'images', limit: 5, windowMs: 100 }
      const long = { unit: 'tokens', limit: 5, windowMs: LONG_MS }
      const name = 'two-releases'
      const release = (...limits: (typeof short)[]) => createVendor(fleet, { name, limits })()
      await take(release(long, short), { cost: { tokens: 5 } })
      await take(release(short), { cost: { images: 1 } })
      const [, leftMs] =
        (await allKeys()).find(([key]) => key.endsWith(`{${name}}:l:default`)) ?? []
      expect(leftMs).toBeGreaterThan(LONG_MS / 2)
    })

    it('every limit key expires when its content is no longer needed', async () => {
      const pod = createVendor(fleet, { limits: [{ limit: 5, windowMs: LONG_MS }] })
      const one = pod()
      const permit = await take(one)
      permit.refund()
      await one.setLimits([{ limit: 6, windowMs: LONG_MS }])
      await one.close()
      const longest = {
        // A token bucket in debt is full again after two windows, others are empty after one.
        l: (LONG_MS + JITTER_MS) * 2,
        u: (LONG_MS + JITTER_MS) * 2,
        g: DAY_MS,
        q: SEQUENCE_MS,
        r: REPORTS_MS,
        e: EPOCH_MS,
        m: EPOCH_MS,
      }
      const kinds = new Set<string>()
      for (const [key, leftMs] of await allKeys()) {
        const kind = /\}:([lugqrem])(?:$|:)/.exec(key)?.[1] as keyof typeof longest
        kinds.add(kind)
        expect(leftMs, key).toBeGreaterThanOrEqual(0)
        expect(leftMs, key).toBeLessThanOrEqual(longest[kind] + MARGIN_MS)
      }
      expect([...kinds].sort()).toEqual(expect.arrayContaining(['e', 'g', 'l', 'q', 'r', 'u']))
    })
  })
}
