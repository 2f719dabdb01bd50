/**
 * What a guard with all its stages on costs a call, beside libraries that have some of them. Both
 * sides of a comparison have the same conditions where both have one, and call the same function;
 * nothing fails, but for the benches of refusals. On a memory store, unless Redis is mentioned.
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
  what: 'what all ten stages cost a call, beside libraries that have some of them',
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
