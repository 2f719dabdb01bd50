/** Runs a scenario twice, with Spillway and without, and compares both with the expectations. */
import { measure } from '../measure/metrics.js'
import type { RunRecord } from '../measure/run-record.js'
import { type RunSummary, summarise } from '../measure/summary.js'
import { METRICS } from '../scenario/metric-names.js'
import {
  type CheckedExpectation,
  type CheckedScenario,
  readScenario,
} from '../scenario/read-scenario.js'
import type { Scenario } from '../scenario/scenario.js'
import { type RunKind, run } from './world.js'

/** Options of a simulation. */
export interface SimulateOptions {
  /** Seed of the random numbers. Range: any integer. Default: 1. */
  seed?: number
  /** Number of pods, in place of the scenario's. Range: integers from 1. Default: that of the scenario. */
  pods?: number
  /** Options of the guard, in place of the scenario's. Default: those of the scenario. */
  guard?: Scenario['guard']
  /** Called with the fraction of the run that is done, 0 to 1. Default: none. */
  onProgress?: (part: number, kind: RunKind) => void
}

/** A measured value, and whether it is within the bounds of an expectation. */
export interface MeasuredValue {
  /** In units of the metric. */
  value: number
  /** Whether it is within the bounds. */
  holds: boolean
}

/** An expectation, and the measured values of both runs. */
export interface CheckResult {
  /** The expectation in words. */
  says: string
  /** The metric. */
  metric: CheckedExpectation['metric']
  /** Lower bound, in units of the metric. */
  atLeast?: number
  /** Upper bound, in units of the metric. */
  atMost?: number
  /** Value with Spillway, and whether it is within the bounds. */
  spillway: MeasuredValue
  /** Value without Spillway, and whether it is within the bounds. */
  naive: MeasuredValue
}

/** Result of a simulation: the same scenario with Spillway and without. */
export interface Simulation {
  /** Name of the scenario. */
  name: string
  /** Headline of the scenario. */
  title: string
  /** What happens in the scenario and why it matters. */
  story: string
  /** Seed of the random numbers. */
  seed: number
  /** Number of pods at the beginning. */
  pods: number
  /** Simulated time. */
  durationMs: number
  /** Whether all expectations hold with Spillway. */
  passed: boolean
  /** Whether some expectation does not hold without Spillway. */
  naiveFails: boolean
  /** The expectations. */
  checks: CheckResult[]
  /** The run with Spillway. */
  spillway: RunSummary
  /** The run without Spillway. */
  naive: RunSummary
}

const nothing = () => {}

/**
 * Runs a scenario twice in virtual time, with Spillway and without, and checks its expectations.
 *
 * @example
 * const simulation = await simulate(SCENARIOS[0], { seed: 7 })
 * console.log(renderText(simulation))
 */
export async function simulate(
  written: Scenario,
  options: SimulateOptions = {},
): Promise<Simulation> {
  const { seed = 1, pods, guard, onProgress = nothing } = options
  const scenario = readScenario(
    { ...written, ...(pods !== undefined && { pods }), ...(guard !== undefined && { guard }) },
    written.name,
  )
  const once = (kind: RunKind) =>
    run({ scenario, kind, seed, onProgress: (part) => onProgress(part, kind) })
  const ours = await once('spillway')
  const naive = await once('naive')
  const checks = scenario.expect.map((each) => check(each, scenario, ours, naive))
  const { name, title, story, durationMs } = scenario
  return {
    name,
    title,
    story,
    seed,
    pods: scenario.pods,
    durationMs,
    passed: checks.every(({ spillway }) => spillway.holds),
    naiveFails: checks.some((each) => !each.naive.holds),
    checks,
    spillway: summarise(ours, scenario),
    naive: summarise(naive, scenario),
  }
}

/**
 * Runs a scenario once.
 * @param options - `kind`: with Spillway or without. `seed`: seed of the random numbers. Range: any integer.
 * Default: with Spillway, seed 1.
 */
export async function simulateOnce(
  written: Scenario,
  { kind = 'spillway', seed = 1 }: { kind?: RunKind; seed?: number } = {},
): Promise<RunSummary> {
  const scenario = readScenario(written, written.name)
  return summarise(await run({ scenario, kind, seed, onProgress: nothing }), scenario)
}

function check(
  expectation: CheckedExpectation,
  scenario: CheckedScenario,
  ours: RunRecord,
  naive: RunRecord,
): CheckResult {
  const { metric, atLeast, atMost, says } = expectation
  const of = (record: RunRecord) => {
    const value = measure(expectation, record, naive, scenario)
    return { value, holds: value >= (atLeast ?? -Infinity) && value <= (atMost ?? Infinity) }
  }
  return {
    says: says ?? METRICS[metric],
    metric,
    ...(atLeast !== undefined && { atLeast }),
    ...(atMost !== undefined && { atMost }),
    spillway: of(ours),
    naive: of(naive),
  }
}
