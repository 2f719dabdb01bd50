/**
 * The TypeScript transitions of limits repeat recorded histories: their replies, their messages and the lifetime of their
 * state. This detects any change of a reply in seconds, without a server. It does not show that replies are right. The claims
 * do, and limit-twins.test.ts, which compares the same kinds of histories with the Lua scripts. After an intended change,
 * `SPILLWAY_RECORD=1 npx vitest run recorded-limits` and `npm run format` record them again.
 */
import { createHash } from 'node:crypto'
import { readFileSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { describe, expect, it } from 'vitest'
import type { LimitSpec } from '../src/store/limit-spec.js'
import { emptyGuard, emptyLane } from '../src/store/limits/lane-state.js'
import { takePermits } from '../src/store/limits/take-permits.js'
import { fc } from './fast-check.js'
import { saturate } from './saturated-fleet.js'
import * as kinds from './twin-claims/limit-histories.js'
import { replayLimits } from './twin-claims/replay-limits.js'

const FILE = fileURLToPath(new URL('fixtures/recorded-limits.json', import.meta.url))
/** The same ones, whatever the seed of other tests. */
const OF_ONE_KIND = { seed: 7, numRuns: 12 }

const recorded: Record<string, string[]> = JSON.parse(readFileSync(FILE, 'utf8'))

function claimRecorded(name: string, hashes: string[]): void {
  if (process.env.SPILLWAY_RECORD !== undefined) {
    recorded[name] = hashes
    writeFileSync(FILE, `${JSON.stringify(recorded, null, 2)}\n`)
  }
  expect(hashes).toEqual(recorded[name])
}

function hashOf(values: readonly unknown[]): string {
  return createHash('sha256').update(JSON.stringify(values)).digest('hex').slice(0, 12)
}

describe('recorded histories of limits', () => {
  it.each([
    ['any limits', kinds.anyLimits],
    ['usual traffic', kinds.usualTraffic],
    ['saturated limits', kinds.saturated],
    ['limits that learn', kinds.learning],
    ['calendar days', kinds.calendarDays],
    ['pools', kinds.pooled],
    ['usual traffic of pools', kinds.pooledTraffic],
  ] as const)('%s give the recorded replies', async (name, kind) => {
    const hashes: string[] = []
    for (const history of fc.sample(kinds.historyOf(kind), OF_ONE_KIND)) {
      const replies: unknown[] = []
      const seen = await replayLimits(history, (_, request, reply) => {
        replies.push(request, reply)
      })
      hashes.push(hashOf([replies, seen]))
    }
    claimRecorded(name, hashes)
  })

  it.each([
    ['token bucket', { algorithm: 'token-bucket', burst: 100 }],
    ['sliding window', { algorithm: 'sliding-window', burst: 0 }],
    ['leaky bucket', { algorithm: 'leaky-bucket', burst: 0 }],
    ['fixed window', { algorithm: 'fixed-window', burst: 0 }],
  ] as const)('%s is divided between saturated pods as recorded', async (name, algorithm) => {
    const limit = { id: 'unit0', limit: 100, windowUs: 800_000, slices: 10, span: 'lane' } as const
    const limits: LimitSpec[] = [{ ...limit, ...algorithm }]
    const [lane, guard] = [emptyLane(), emptyGuard()]
    const fleet = { limits, costs: [[1], [60], [20], [1]], callers: 20, seconds: 6, seed: 1 }
    const replies: unknown[] = []
    const lateMs = { mean: 40, most: 400 }
    await saturate({ ...fleet, lateMs, stopsAfterSeconds: 3 }, (request, nowUs) => {
      const kept = takePermits(lane, guard, request, nowUs)
      replies.push(structuredClone(kept))
      return kept
    })
    claimRecorded(`${name}, saturated`, [hashOf(replies)])
  })
})
