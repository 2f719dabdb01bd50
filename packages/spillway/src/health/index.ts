/** Liveness, readiness and a report on everything behind a process. */
export type { SpillwayHealth } from '../guard/snapshot.js'
export type { CheckAnswer, CheckResult, HealthStatus } from './checks.js'
export {
  createHealth,
  type Health,
  type HealthCheckOptions,
  type HealthLevel,
  type HealthOptions,
  type HealthReport,
} from './health.js'
