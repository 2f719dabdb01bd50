/** Actions of operators, and reports on the whole fleet. */
export type {
  FleetBreakerReport,
  FleetGuardReport,
  FleetKeyReport,
  FleetLimitReport,
  FleetReport,
  FleetStoreStatus,
} from '../guard/fleet/fleet-report.js'
export type { FleetJobQueueReport } from '../guard/jobs/queue-snapshot.js'
export type { OperatorAction, OperatorRequest, OperatorResult } from './actions.js'
export type { AuditEntry, AuditedAction } from './audit-log.js'
export { createOperator, type Operator, type OperatorOptions } from './operator.js'
export type { RecentAction } from './recent-actions.js'
