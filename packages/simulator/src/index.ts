/** Experiments in virtual time over the real library. */

export type { RunSummary } from './measure/summary.js'
export { findConflicts } from './plan/conflicts.js'
export { checkNeeds, type PlanNeeds } from './plan/needs.js'
export { type Plan, type PlannedNumber, planFor } from './plan/plan.js'
export { rehearsalOf, rehearse } from './plan/rehearsal.js'
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
