/** Simulates a planned guard with a vendor of this contract and 150 % of the allowed load. */
import type { GuardOptions } from 'spillway'
import { type Simulation, simulate } from '../run/simulate.js'
import type { Scenario } from '../scenario/scenario.js'
import { type CheckedNeeds, checkNeeds, type PlanNeeds } from './needs.js'

const OVERLOAD = 1.5
const MOST_CALLS = 30_000
const WINDOWS = 3

/** Creates the scenario that tests a planned guard. */
export function rehearsalOf(written: PlanNeeds, guard: GuardOptions): Scenario {
  const needs = checkNeeds(written)
  const { pods, latencyMs, p99Ms, deadlineMs, limits, contractRps } = needs
  const contract = limits.filter(({ unit }) => unit === 'requests')
  const rps = Math.min(contractRps, fleetRps(needs, guard)) * OVERLOAD
  const wantedMs = Math.max(30_000, contract[0]!.windowMs * WINDOWS)
  const durationMs = Math.round(Math.max(5_000, Math.min(wantedMs, (MOST_CALLS / rps) * 1_000)))
  return {
    name: 'plan',
    title: `150 % of the contract, with ${pods} pods`,
    story:
      'Tests the result of spillway plan: a vendor with this contract and latency, and callers that request 150 % of the limit.',
    durationMs,
    pods,
    vendor: {
      serviceMs: { median: medianOf(latencyMs, p99Ms), p99: p99Ms },
      travelMs: { min: 1, max: 10 },
      limits: contract,
    },
    guard,
    naive: { attempts: 3, timeoutMs: Math.ceil(p99Ms * 1.5), backoff: 'exponential' },
    clients: [{ name: 'callers', rps, timeoutMs: deadlineMs }],
    expect: [
      { metric: 'worstWindow', atMost: 1, says: 'the fullest window, as a share of the contract' },
      { metric: 'throttled', atMost: 0, says: 'answers of 429' },
      {
        metric: 'served',
        atLeast: 0.85 / OVERLOAD,
        says: 'served, at 150 % load',
      },
      {
        metric: 'endedP99Ms',
        atMost: deadlineMs * 1.02,
        says: 'every request ends by its deadline',
      },
    ],
  }
}

/** Simulates a planned guard under load, with and without Spillway. */
export function rehearse(needs: PlanNeeds, guard: GuardOptions, seed = 1): Promise<Simulation> {
  return simulate(rehearsalOf(needs, guard), { seed })
}

/** Calls per second that the pods can process, independent of the contract. */
function fleetRps({ pods, latencyMs }: CheckedNeeds, { concurrency, pace }: GuardOptions): number {
  const bySlots = ((concurrency?.limit ?? Number.POSITIVE_INFINITY) * 1_000) / latencyMs
  const byPace =
    pace === undefined ? Number.POSITIVE_INFINITY : pace.limit * (1_000 / Number(pace.windowMs))
  return pods * Math.min(bySlots, Number.isNaN(byPace) ? Number.POSITIVE_INFINITY : byPace)
}

/** Parameters of a log-normal distribution with approximately this mean and this 99th percentile. */
function medianOf(meanMs: number, p99Ms: number): number {
  // mean = median × e^(σ²/2), p99 = median × e^(zσ): the smaller root of σ²/2 − zσ + ln(p99/mean) = 0.
  const z = 2.326_347_874
  const sigma = z - Math.sqrt(Math.max(0, z ** 2 - 2 * Math.log(p99Ms / meanMs)))
  return meanMs / Math.exp(sigma ** 2 / 2)
}
