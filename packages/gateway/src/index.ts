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
export { createGateway, type Gateway, type GatewayOptions } from './gateway.js'
export { createLog, type GatewayLog } from './observe/log.js'
