/** Limits of models that no request has named before. */
import fc from 'fast-check'
import { createSharedRateLimiter, memoryStore } from 'spillway/shared'
import { createVirtualClock } from 'spillway/testing'
import { describe, expect, it } from 'vitest'
import { usualOrLong } from '../../../spillway/test/long-run.js'
import { ModelLanes, ModelLimits } from './model-lanes.js'

const WINDOW_MS = 10_000
const LIMIT = 3
const LIMITS = [{ limit: LIMIT, windowMs: WINDOW_MS }]

const steps = fc.array(
  fc.record({
    pauseMs: fc.oneof(fc.nat(300), fc.nat(WINDOW_MS)),
    model: fc.nat(7).map((number) => `gpt-${number}`),
    pod: fc.nat(1),
    /** The vendor answers this many steps later. Undefined: it refuses the request. */
    answeredAfter: fc.option(fc.nat(4), { nil: undefined }),
  }),
  { minLength: 40, maxLength: 120 },
)

describe('limits that count each model', () => {
  it.each([
    ['of the vendor', { limits: LIMITS, models: [] }],
    [
      'of an entry of models',
      {
        limits: [{ limit: 1_000, windowMs: WINDOW_MS }],
        models: [{ match: 'gpt-*', limits: LIMITS }],
      },
    ],
  ])(
    'no model gets more than its limit %s in any window while lanes of new models begin, on two pods',
    async (_, { limits, models }) => {
      let granted = 0
      await fc.assert(
        fc.asyncProperty(steps, async (history) => {
          const clock = createVirtualClock()
          const store = memoryStore({ clock })
          const rules = new ModelLimits({ models, guard: { limits } })
          const pods = [0, 1].map(() => {
            const lanes = new ModelLanes(1_000, [], clock)
            lanes.configure(1_000, [], rules)
            const options = { name: 'vendor', store, clock, limits, lanes: models }
            return { lanes, limiter: createSharedRateLimiter(options) }
          })
          const starts = new Map<string, number[]>()
          const answers: { atStep: number; answer: () => void }[] = []
          for (const [step, { pauseMs, model, pod, answeredAfter }] of history.entries()) {
            await clock.advance(pauseMs)
            for (const { atStep, answer } of answers) if (atStep === step) answer()
            const { lanes, limiter } = pods[pod] as (typeof pods)[number]
            const parts = { model, key: undefined }
            const { allowed } = await limiter.acquire({ lane: lanes.laneOf(parts) as string })
            if (!allowed) continue
            granted++
            const nowMs = clock.now()
            const ofModel = [...(starts.get(model) ?? []), nowMs]
            starts.set(model, ofModel)
            const inWindow = ofModel.filter((atMs) => atMs > nowMs - WINDOW_MS)
            expect(inWindow.length, `${model} at step ${step}`).toBeLessThanOrEqual(LIMIT)
            if (answeredAfter === undefined) continue
            answers.push({ atStep: step + 1 + answeredAfter, answer: () => lanes.answered(parts) })
          }
          await Promise.all(pods.map(({ limiter }) => limiter.close()))
        }),
        { numRuns: usualOrLong(25, 60) },
      )
      expect(granted).toBeGreaterThan(60 * 20)
    },
  )
})
