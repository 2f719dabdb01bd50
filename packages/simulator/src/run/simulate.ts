/** A scenario run twice, with Spillway and without, and what was promised held against both. */
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

export interface SimulateOptions {
  /** Any integer. Default: 1. */
  seed?: number
  /** In place of the scenario's. */
  pods?: number
  /** In place of the scenario's. */
  guard?: Scenario['guard']
  /** Told now and then how far it is, 0 to 1. */
  onProgress?: (part: number, kind: RunKind) => void
}

export interface CheckResult {
  says: string
  metric: CheckedExpectation['metric']
  atLeast?: number
  atMost?: number
  spillway: { value: number; holds: boolean }
  naive: { value: number; holds: boolean }
}

export interface Simulation {
  name: string
  title: string
  story: string
  seed: number
  pods: number
  durationMs: number
  /** Everything that was promised holds with Spillway. */
  passed: boolean
  /** And something of it does not without. */
  naiveFails: boolean
  checks: CheckResult[]
  spillway: RunSummary
  naive: RunSummary
}

const nothing = () => {}

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

/** One run, without its counterpart. */
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
