/**
 * Cost of a guard with all stages per call, compared with libraries that have some of them. Both sides have the same
 * settings where both have a setting, and call the same function. No call fails, except in the benches of refusals.
 * The store is in memory unless the name mentions Redis.
 */
import {
  guardSignalVsCockatiel,
  guardVsCockatiel,
  guardVsOpossum,
} from '../guard/beside-libraries.js'
import {
  growthBareLine,
  growthQueue,
  growthQueueOthers,
  queueVsPQueue,
} from '../guard/call-queues.js'
import { bytesPerCall, commandsPerCall, guardOverBare } from '../guard/costs.js'
import { refusalBreaker, refusalLimit, refusalShed } from '../guard/refusals.js'
import type { Suite } from '../measure.js'

export const guard: Suite = {
  name: 'guard',
  what: 'cost of nine stages per call, compared with libraries that have some of them',
  benches: [
    guardVsOpossum,
    guardVsCockatiel,
    guardSignalVsCockatiel,
    refusalShed,
    refusalBreaker,
    refusalLimit,
    queueVsPQueue,
    growthQueue,
    growthQueueOthers,
    growthBareLine,
    guardOverBare,
    bytesPerCall,
    commandsPerCall(200, 0.1),
    commandsPerCall(1, 2),
  ],
}
