export type { Clock, Timer } from '../core/clock.js'
export { createRandom, type Random } from '../core/random.js'
export { sleep } from '../core/sleep.js'
export {
  createVirtualClock,
  type VirtualClock,
  type VirtualClockOptions,
} from './virtual-clock.js'
