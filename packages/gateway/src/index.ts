export type {
  CallerConfig,
  GatewayConfig,
  ProtocolName,
  QueueConfig,
  RouteConfig,
  TargetConfig,
  VendorConfig,
  VendorKey,
} from './config/config.js'
export { ConfigError, type ConfigMistake } from './config/config-error.js'
export { type LoadOptions, loadConfig } from './config/load.js'
export type { ServerLimits } from './config/shapes/server-limits-shape.js'
export { createGateway, type Gateway, type GatewayOptions } from './gateway.js'
export { createLog, type GatewayLog } from './observe/log.js'
export type { Changes } from './reload/changes.js'
export type { ReloadReport } from './reload/reloads.js'
