export { createRandom, type Random } from '../core/random.js'
export { type Clock, systemClock, type Timer } from '../core/time/clock.js'
export { sleep } from '../core/time/sleep.js'
export type { Distribution } from './distribution.js'
export {
  createFaultyStore,
  type FaultyStore,
  type FaultyStoreCounts,
  type FaultyStoreOptions,
} from './faulty-store.js'
export {
  createHarness,
  type Harness,
  type HarnessOptions,
  type HarnessPod,
  type PodOptions,
  type PodTools,
} from './harness.js'
export {
  createVendor,
  type Vendor,
  type VendorCallOptions,
  type VendorCalls,
  type VendorLimit,
  type VendorOptions,
} from './vendor.js'
export type { VendorAnswer, VendorError } from './vendor-answer.js'
export {
  createVirtualClock,
  type VirtualClock,
  type VirtualClockOptions,
} from './virtual-clock.js'
