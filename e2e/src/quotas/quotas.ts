/**
 * Agents in four pods send more than the contract of their vendor allows: how often the vendor refuses, and how much of
 * the contract is used, with the vendor's rules and with plain accounting. See docs/quotas.md.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { createMockVendor, type MockCall, type MockVendor } from '@spillway/mock-vendor'
import { atLeast, atMost, type Figure, type Scenario, told } from '../scenario.js'
import { AgentFleet } from './fleet.js'
import type { Accounting, Run } from './messages.js'
import { VENDORS, type Vendor } from './vendors.js'

const WINDOW_MS = 20_000
/** Windows until the traffic is measured: the first is for agents to begin, the second for estimates to be learned. */
const WARM_UP = 2
const MEASURED = 3
const MODELS = ['large', 'medium', 'small']
/** Of each model, in each pod. */
const AGENTS = 12
const SEED = 30
const KNOBS = { latencyMs: [1_000, 2_000], tokens: [50, 350] } as const

export const quotas: Scenario = {
  name: 'quotas',
  what: 'agents in four pods use up the quota of each vendor, and no request is refused',
  seconds: 110,
  async run(only) {
    const fleet = await AgentFleet.start()
    const vendors = VENDORS.filter(({ quota }) => only === undefined || quota === only)
    // All at once: long windows in a short time, and the same machine for both ways of counting.
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
}

interface Measured {
  readonly requests: number
  /** Requests that the vendor answered with 429, from the first request on. */
  readonly refused: number
  /** Share of the contract, over all models, once the agents have begun. */
  readonly used: number
  /** Share of the input that the vendor read from its cache. */
  readonly cached: number
}

function figuresOf(name: string, preset: Measured, plain: Measured): Figure[] {
  return [
    atMost(`${name}: refused`, preset.refused, 0),
    atLeast(`${name}: used`, preset.used, 0.95),
    told(`${name}: requests`, preset.requests),
    told(`${name}: cached`, preset.cached),
    told(`${name}: refused, plain`, plain.refused),
    told(`${name}: used, plain`, plain.used),
  ]
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
    knobs: { latencyMs: [...KNOBS.latencyMs], tokens: [...KNOBS.tokens] },
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
  return judged(mock, limits[0] as Vendor['limits'][number], fromMs, untilMs)
}

/** At each moment, the vendor has charged some of its limit within the last window. `used` is the average of that. */
function judged(
  { calls, counts }: MockVendor,
  { unit, limit }: Vendor['limits'][number],
  fromMs: number,
  untilMs: number,
): Measured {
  const sum = (amount: (call: MockCall) => number) =>
    calls.reduce((total, call) => total + amount(call), 0)
  const countedMs = ({ atMs }: MockCall) =>
    Math.max(0, Math.min(atMs + WINDOW_MS, untilMs) - Math.max(atMs, fromMs))
  const charged = sum((call) => (call.charged?.[unit] ?? 0) * countedMs(call))
  return {
    requests: counts.arrived,
    refused: counts.throttled,
    used: charged / (MODELS.length * limit * (untilMs - fromMs)),
    cached: sum((call) => call.cachedTokens) / sum((call) => call.promptTokens),
  }
}
