/**
 * Agents in four pods send more than the contract of their vendor allows. The scenario measures refusals by the vendor
 * and the use of the contract, with the vendor's rules and with plain accounting. See docs/gateway/quotas.md.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { createMockVendor, type MockCall } from '@spillway/mock-vendor'
import {
  atLeast,
  atMost,
  crossTable,
  type Figure,
  reported,
  type Scenario,
  UsageError,
} from '../scenario.js'
import { AgentFleet } from './fleet.js'
import type { Accounting, Run } from './messages.js'
import { VENDORS, type Vendor } from './vendors.js'

const WINDOW_MS = 20_000
/** Windows before the measurement: in the first, agents start; in the second, estimates are learned. */
const WARM_UP = 2
const MEASURED = 3
const MODELS = ['large', 'medium', 'small']
/** Agents of each model, in each pod. */
const AGENTS = 7
const SEED = 30
const LATENCY_MS = [1_000, 2_000] as [number, number]
const ANSWER_TOKENS = [50, 350] as [number, number]

export const quotas: Scenario = {
  name: 'quotas',
  what: 'agents in four pods use up the quota of each vendor, and no request is refused',
  seconds: 110,
  options: ['only'],
  async run({ only }) {
    const vendors = VENDORS.filter(({ quota }) => only === undefined || quota === only)
    if (vendors.length === 0) {
      throw new UsageError(
        `unknown quota "${only}"; expected one of: ${VENDORS.map(({ quota }) => quota).join(', ')}`,
      )
    }
    const fleet = await AgentFleet.start()
    // In parallel: windows are long, and both ways of counting see the same load of the machine.
    const figures = await Promise.all(
      vendors.map(async (vendor) => {
        const [preset, plain] = await Promise.all([
          measure(fleet, vendor, 'preset'),
          measure(fleet, vendor, 'plain'),
        ])
        return figuresOf(vendor.quota, preset, plain)
      }),
    )
    await fleet.stop()
    return figures.flat()
  },
  table: crossTable,
}

function figuresOf(name: string, preset: Measured, plain: Measured): Figure[] {
  return [
    atMost(`${name}: 429s`, preset.refused, 0),
    atLeast(`${name}: used`, preset.used, 0.95),
    reported(`${name}: counted in the end`, preset.counted),
    reported(`${name}: requests`, preset.requests),
    reported(`${name}: input from the cache`, preset.cached),
    reported(`${name}: 429s, plain`, plain.refused),
    reported(`${name}: used, plain`, plain.used),
    reported(`${name}: requests, plain`, plain.requests),
  ]
}

interface Measured {
  readonly requests: number
  /** Requests that the vendor answered with 429, from the first request on. */
  readonly refused: number
  /** The average share of its limits that the vendor has charged within the last window, after the start. */
  readonly used: number
  /** The average share, without reservations that the vendor returned after the response. */
  readonly counted: number
  /** Share of the input that the vendor read from its cache. */
  readonly cached: number
}

async function measure(
  fleet: AgentFleet,
  { quota, limits }: Vendor,
  accounting: Accounting,
): Promise<Measured> {
  const mock = createMockVendor({
    quota,
    seed: SEED,
    limits: limits.map((limit) => ({ ...limit, windowMs: WINDOW_MS })),
    promptCache: true,
    knobs: { latencyMs: LATENCY_MS, tokens: ANSWER_TOKENS },
    maxCalls: 100_000,
  })
  const { url } = await mock.start()
  const traffic = { windowMs: WINDOW_MS, models: MODELS, agents: AGENTS, seed: SEED }
  const run: Run = { name: `${quota}-${accounting}`, quota, accounting, url, ...traffic }
  fleet.begin(run)
  await sleep(WARM_UP * WINDOW_MS)
  const fromMs = performance.now()
  await sleep(MEASURED * WINDOW_MS)
  const untilMs = performance.now()
  await fleet.end(run)
  await mock.close()
  const { arrived, throttled } = mock.counts
  const shares = sharesOf(mock.calls, limits[0] as Vendor['limits'][number], fromMs, untilMs)
  return { requests: arrived, refused: throttled, ...shares }
}

function sharesOf(
  calls: readonly MockCall[],
  { unit, limit }: Vendor['limits'][number],
  fromMs: number,
  untilMs: number,
): Pick<Measured, 'used' | 'counted' | 'cached'> {
  const sum = (amount: (call: MockCall) => number) =>
    calls.reduce((total, call) => total + amount(call), 0)
  const measuredMs = (startMs: number, endMs: number) =>
    Math.max(0, Math.min(endMs, untilMs) - Math.max(startMs, fromMs))
  const counted = sum(
    ({ charged, atMs }) => (charged?.[unit] ?? 0) * measuredMs(atMs, atMs + WINDOW_MS),
  )
  const givenBack = sum(({ reserved, charged, atMs, endedAtMs = untilMs }) => {
    const difference = (reserved?.[unit] ?? 0) - (charged?.[unit] ?? 0)
    return difference * measuredMs(atMs, endedAtMs)
  })
  const whole = MODELS.length * limit * (untilMs - fromMs)
  return {
    used: (counted + givenBack) / whole,
    counted: counted / whole,
    cached: sum(({ cachedTokens }) => cachedTokens) / sum(({ promptTokens }) => promptTokens),
  }
}
