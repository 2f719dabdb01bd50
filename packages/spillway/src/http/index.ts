export type { HopHeaders } from '../core/hops.js'
export { judgeStatus, type Verdict } from '../core/outcome.js'
export { parseRetryAfter, retryAfterFromHeaders } from '../core/retry-after.js'
export type { HealthLevel } from '../health/health.js'
export {
  type CallQueueSnapshot,
  createCallQueue,
  type QueuedRunOptions,
  type StandaloneCallQueue,
  type StandaloneCallQueueOptions,
} from './call-queue.js'
export { clientNetwork, type TrustedProxies } from './client-address.js'
export { createHops, type Hops, type HopsOptions } from './hops.js'
export { type HttpHandler, type HttpListener, spillwayHttp } from './node-server.js'
export {
  type AccessDenial,
  type AccessRequest,
  createOperatorAccess,
  type OperatorAccess,
  type OperatorAccessOptions,
} from './operator-access.js'
export {
  exhaustedItem,
  type Left,
  type Policy,
  policyItem,
  standingItem,
} from './rate-limit-fields.js'
export type { ServerCall, ServerSnapshot } from './server-gate.js'
export type {
  HealthAnswer,
  HealthSource,
  Identity,
  ServerOptions,
  ServerShedder,
} from './server-options.js'
export { shedRequest } from './shed.js'
