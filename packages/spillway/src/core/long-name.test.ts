import { memoryStore } from 'spillway/shared'
import { expect, it } from 'vitest'
import { createUserCharges } from '../shared/user-limits/charges.js'
import { createLevels } from '../shared/user-limits/levels.js'
import { boundedName } from './long-name.js'
import { systemClock } from './time/clock.js'

const LONG = 'x'.repeat(14_000)
const LEVELS = (['user', 'ip', 'tier', 'endpoint'] as const).map((per) => ({
  per,
  limit: 10,
  windowMs: 60_000,
  algorithm: 'token-bucket' as const,
  burst: undefined,
  outage: 'allow' as const,
}))

it('no key of a user limit is longer than 300 characters, however long the names are', () => {
  const subject = { user: LONG, ip: LONG, tier: LONG, endpoint: `/${LONG}` }
  const keys = createLevels(LEVELS, 'gateway').map((level) => level.chargeFor(subject)?.key ?? '')
  expect(keys).toHaveLength(4)
  for (const key of keys) expect(key.length).toBeLessThan(300)
  expect(new Set(keys).size).toBe(4)
})

it('long names that differ in their last character have limits of their own', () => {
  const [level] = createLevels(LEVELS, undefined)
  const keys = ['a', 'b', 'a'].map((end) => level?.chargeFor({ user: LONG + end })?.key)
  expect(keys[0]).toBe(keys[2])
  expect(keys[0]).not.toBe(keys[1])
})

it('a name that looks like the hash of another has a key of its own', () => {
  const [level] = createLevels(LEVELS, undefined)
  const hashed = level?.chargeFor({ user: LONG })?.key ?? ''
  const [, imitation = ''] = /^\{(.*)\}/.exec(hashed) ?? []
  expect(level?.chargeFor({ user: imitation })?.key).not.toBe(hashed)
})

it('a long name is limited as a short one is', () => {
  const store = memoryStore()
  const charges = createUserCharges({
    store,
    name: undefined,
    levels: [{ ...(LEVELS[0] as (typeof LEVELS)[number]), limit: 2 }],
    expectedPods: 1,
    clock: systemClock,
    random: () => 0.5,
  })
  const refused = Array.from({ length: 3 }, () => {
    const request = charges.requestFor({ user: LONG }, 1)
    return request && (charges.charge(request) as { refusedBy: number }).refusedBy
  })
  expect(refused).toEqual([0, 0, 1])
})

it('a name of 200 characters is kept as it is, and a longer one as its hash', () => {
  expect(boundedName('x'.repeat(200))).toBe('x'.repeat(200))
  expect(boundedName('x'.repeat(201))).toMatch(/^sha256:[\w-]{43}$/)
})
