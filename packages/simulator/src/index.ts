/** Experiments in virtual time over the real library. */

export type { RunSummary } from './measure/summary.js'
export { findConflicts } from './plan/conflicts.js'
export { checkNeeds, type PlanNeeds } from './plan/needs.js'
export { type Plan, type PlannedNumber, planFor } from './plan/plan.js'
export { rehearsalOf, rehearse } from './plan/rehearsal.js'
export type { Opening, PodsFigures, PodsRecord } from './pods/figures.js'
export { figuresOf } from './pods/figures.js'
export {
  assignVendors,
  CALL_TIMEOUT_MS,
  countPods,
  DEFAULT_PODS_PLAN,
  drawPauseMs,
  guardOf,
  outagesOf,
  type PodsPlan,
  SERVICE_MS,
} from './pods/plan.js'
export { type SimulatePodsOptions, simulatePods } from './pods/simulate-pods.js'
export { renderHtml } from './report/html.js'
export { renderText } from './report/text.js'
export {
  type CheckResult,
  type MeasuredValue,
  type SimulateOptions,
  type Simulation,
  simulate,
  simulateOnce,
} from './run/simulate.js'
export { METRICS, type MetricName } from './scenario/metric-names.js'
export { readScenario } from './scenario/read-scenario.js'
export type {
  AutoscalePlan,
  ClientPlan,
  Expectation,
  NaivePlan,
  PodsEvent,
  Scenario,
  ScenarioEvent,
  StoreEvent,
  VendorEvent,
  VendorPlan,
} from './scenario/scenario.js'
export type { Spread } from './scenario/spread.js'
export { SCENARIOS } from './scenarios/index.js'
export type { GuardChange } from './search/changes.js'
export { renderSearch } from './search/render.js'
export {
  type BoundaryCell,
  type SearchOptions,
  type StabilitySearch,
  searchStability,
} from './search/search.js'
export { TRIGGER_KINDS, type Trial, type TrialOutcome, type TriggerKind } from './search/trial.js'
export { startTrialThreads, type TrialThreads } from './search/trial-threads.js'
