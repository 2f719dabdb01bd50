export type { HopHeaders } from '../core/hops.js'
export { createHops, type Hops, type HopsOptions } from './hops.js'
export { shedRequest } from './shed.js'
