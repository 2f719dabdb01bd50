/** The whole fleet in virtual time: callers want more than the vendor gives, and the vendor gives less than configured. */
import { describe, expect, it } from 'vitest'
import { onEvent, type SpillwayEvent } from '../src/core/events.js'
import { type FleetPlan, runLearningFleet, shareFrom, windowsUntilUsed } from './learned-fleet.js'
import { usualOrLong } from './long-run.js'

/** Kinds of windows of the vendor, and whether it sends Retry-After. */
const VENDORS = usualOrLong<readonly (readonly ['fixed' | 'sliding', boolean])[]>(
  [
    ['fixed', true],
    ['sliding', false],
  ],
  [
    ['fixed', true],
    ['fixed', false],
    ['sliding', true],
    ['sliding', false],
  ],
)
const limit = { limit: 200, windowMs: 3_000, learn: true }
const RISE = 15

interface Variant extends Omit<FleetPlan, 'vendor'> {
  name: string
  vendor: Pick<FleetPlan['vendor'], 'limits' | 'windowMs' | 'unit' | 'serviceMs' | 'phaseMs'>
}

const VARIANTS: Variant[] = [
  { name: '60 per 3 s', limits: [limit], vendor: { limits: [[0, 60]], windowMs: 3_000 } },
  {
    name: '60 per 3 s with slow answers',
    limits: [limit],
    vendor: { limits: [[0, 60]], windowMs: 3_000, serviceMs: [500, 3_000], phaseMs: 700 },
  },
  {
    name: '30 per 2 s for one pod',
    pods: 1,
    limits: [{ ...limit, windowMs: 2_000 }],
    vendor: { limits: [[0, 30]], windowMs: 2_000 },
  },
  {
    name: '120 per 2 s for four pods',
    pods: 4,
    limits: [{ limit: 5_000, windowMs: 2_000, learn: true }],
    vendor: { limits: [[0, 120]], windowMs: 2_000 },
  },
  {
    name: '30,000 tokens per 3 s',
    limits: [{ unit: 'tokens', limit: 100_000, windowMs: 3_000, learn: true }],
    cost: [200, 1_800],
    vendor: { unit: 'tokens', limits: [[0, 30_000]], windowMs: 3_000 },
  },
  {
    name: '60, later 30 per 3 s',
    limits: [limit],
    vendor: {
      limits: [
        [0, 60],
        [10, 30],
      ] as const,
      windowMs: 3_000,
      phaseMs: 1_000,
    },
  },
]

const RISING: Variant[] = [
  {
    name: '60, later 200 per 3 s',
    limits: [limit],
    vendor: {
      limits: [
        [0, 60],
        [RISE, 200],
      ] as const,
      windowMs: 3_000,
    },
  },
  {
    name: '30, later 120 per 2 s for four pods',
    pods: 4,
    limits: [{ limit: 500, windowMs: 2_000, learn: true }],
    vendor: {
      limits: [
        [0, 30],
        [RISE, 120],
      ] as const,
      windowMs: 2_000,
    },
  },
]

/** `npm test` runs each variant with one kind of vendor. */
const chosenFor = (vendor: number, variants: Variant[]) =>
  usualOrLong(
    variants.filter((_, index) => index % VENDORS.length === vendor),
    variants,
  )

describe('fleet that is configured for more than its vendor gives', () => {
  for (const [index, [window, retryAfter]] of VENDORS.entries()) {
    const kind = `${window} windows, ${retryAfter ? 'with' : 'without'} Retry-After`
    for (const { name, vendor, ...plan } of chosenFor(index, VARIANTS)) {
      it(`${name}, ${kind}: few refusals and most of what the vendor gives from the fifth window on`, async () => {
        const counts = await runLearningFleet({
          ...plan,
          vendor: { ...vendor, window, retryAfter },
        })
        const { refused, use } = shareFrom(counts, 4)
        expect(refused).toBeLessThanOrEqual(0.1)
        expect(use).toBeGreaterThanOrEqual(0.85)
      })
    }
    for (const { name, vendor, ...plan } of chosenFor(index, RISING)) {
      it(`${name}, ${kind}: uses 85 % of the higher limit within ten windows`, async () => {
        const rising = { ...plan, windows: RISE + 30, vendor: { ...vendor, window, retryAfter } }
        const counts = await runLearningFleet(rising)
        expect(windowsUntilUsed(counts, RISE)).toBeLessThanOrEqual(10)
        const { refused, use } = shareFrom(counts, RISE + 10)
        expect(refused).toBeLessThanOrEqual(0.1)
        expect(use).toBeGreaterThanOrEqual(0.85)
        expect(shareFrom(counts, 4).refused).toBeLessThanOrEqual(0.1)
      })
    }
  }

  it('vendor that says how many requests are left refuses few calls from the second window on', async () => {
    const vendor = { limits: [[0, 60]] as const, windowMs: 3_000, window: 'fixed' as const }
    const says = { ...vendor, retryAfter: true, headers: true }
    const { refused, use } = shareFrom(await runLearningFleet({ limits: [limit], vendor: says }), 1)
    expect(refused).toBeLessThanOrEqual(0.05)
    expect(use).toBeGreaterThanOrEqual(0.85)
  })

  it('without `learn` the vendor goes on refusing', async () => {
    const limits = [{ ...limit, learn: false }]
    const vendor = { limits: [[0, 60]] as const, windowMs: 3_000, window: 'sliding' as const }
    const counts = await runLearningFleet({ limits, vendor: { ...vendor, retryAfter: false } })
    expect(shareFrom(counts, 4).refused).toBeGreaterThan(0.2)
  })

  it('fleet with single refusals for another reason keeps its limit', async () => {
    const plan = { limits: [[0, 1_000]] as const, windowMs: 3_000, window: 'sliding' as const }
    const vendor = { ...plan, retryAfter: false, blipEvery: 400 }
    const counts = await runLearningFleet({ limits: [limit], vendor })
    const accepted = counts.slice(4).reduce((sum, each) => sum + each.accepted, 0)
    expect(accepted / (counts.length - 4)).toBeGreaterThan(0.7 * 200)
  })

  it('lowered limit is reported once, not with every refusal', async () => {
    const events: SpillwayEvent[] = []
    const stop = onEvent((event) => {
      if (event.type === 'limit.learned') events.push(event)
    })
    const vendor = { limits: [[0, 60]] as const, windowMs: 3_000, window: 'sliding' as const }
    await runLearningFleet({
      limits: [limit],
      windows: 10,
      vendor: { ...vendor, retryAfter: true },
    })
    stop()
    expect(events.at(-1)).toMatchObject({ name: 'vendor', limit: 'requests', configured: 200 })
    expect(events.length).toBeLessThanOrEqual(8)
    for (const { effective } of events as { effective: number }[])
      expect(effective).toBeLessThan(200)
  })
})
