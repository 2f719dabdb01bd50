/** Saturated pods get equal shares of a limit, however late they are. Virtual time, so the load does not matter. */
import { describe, expect, it } from 'vitest'
import type { LimitSpec } from '../src/store/limit-spec.js'
import { emptyGuard, emptyLane } from '../src/store/limits/lane-state.js'
import { takePermits } from '../src/store/limits/take-permits.js'
import { type FleetOptions, inequality, saturate } from './saturated-fleet.js'

const LIMITS = {
  'a sliding window': { algorithm: 'sliding-window', windowUs: 800_000, slices: 10, burst: 0 },
  'a token bucket': { algorithm: 'token-bucket', windowUs: 1_000_000, slices: 1, burst: 10 },
  'a fixed window': { algorithm: 'fixed-window', windowUs: 800_000, slices: 1, burst: 0 },
} as const
const KINDS = Object.keys(LIMITS) as (keyof typeof LIMITS)[]
const SEEDS = Array.from({ length: 5 }, (_, index) => index + 1)

function limitOf(kind: keyof typeof LIMITS, id = 'requests', limit = 100): LimitSpec {
  return { ...LIMITS[kind], id, limit, span: 'lane' }
}

function callsOf(options: Partial<FleetOptions> & Pick<FleetOptions, 'limits' | 'seed'>) {
  const [lane, guard] = [emptyLane(), emptyGuard()]
  const usual = { callers: 30, seconds: 9.5, lateMs: { mean: 1, most: 20 } }
  const costs = Array.from({ length: 4 }, () => options.limits.map(() => 1))
  return saturate({ costs, ...usual, ...options }, (request, nowUs) =>
    takePermits(lane, guard, request, nowUs),
  )
}

describe('equal shares', () => {
  it.for(KINDS)(
    'four saturated pods get equal shares of %s within 20 % although each is up to 400 ms late',
    async (kind) => {
      const lateMs = { mean: 40, most: 400 }
      for (const seed of SEEDS) {
        const calls = await callsOf({ limits: [limitOf(kind)], seed, lateMs })
        expect(inequality(calls), calls.join(', ')).toBeLessThan(0.2)
      }
    },
  )

  it.for(KINDS)(
    'four saturated pods use all of %s and get equal shares within 5 %',
    async (kind) => {
      for (const seed of SEEDS) {
        const calls = await callsOf({ limits: [limitOf(kind)], seed })
        expect(inequality(calls), calls.join(', ')).toBeLessThan(0.05)
        const perSecond = calls.reduce((sum, each) => sum + each, 0) / 8
        expect(perSecond).toBeGreaterThan(kind === 'a fixed window' ? 120 : 98)
      }
    },
  )

  it('pods whose calls cost a different number of tokens get equal shares of the tokens', async () => {
    const limits = [limitOf('a sliding window'), limitOf('a sliding window', 'tokens', 10_000)]
    const costs = [1_000, 500, 250, 250].map((tokens) => [1, tokens])
    for (const seed of SEEDS) {
      const calls = await callsOf({ limits, costs, seed, seconds: 20 })
      const tokens = calls.map((each, pod) => each * (costs[pod]?.[1] as number))
      expect(inequality(tokens), tokens.join(', ')).toBeLessThan(0.2)
    }
  })

  it.for(KINDS)('a pod that stops for good costs the others of %s at most 0.5 s', async (kind) => {
    for (const seed of SEEDS) {
      const options = { limits: [limitOf(kind)], seed, stopsAfterSeconds: 4 }
      const [stopped = 0, ...others] = await callsOf(options)
      const all = await callsOf({ limits: [limitOf(kind)], seed })
      const lost =
        all.reduce((sum, each) => sum + each, 0) - others.reduce((sum, each) => sum + each, stopped)
      expect(lost).toBeLessThanOrEqual(50)
      expect(inequality(others), others.join(', ')).toBeLessThan(0.2)
    }
  })
})
