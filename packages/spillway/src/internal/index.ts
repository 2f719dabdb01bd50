/**
 * What the other packages of Spillway use of the library. Unstable: names here may change in every
 * release, so applications must not import them.
 */
export { ArrivalLog } from '../core/collections/arrival-log.js'
export { createRandom, type Random } from '../core/random.js'
export { systemClock } from '../core/time/clock.js'
