/**
 * Everything a second attempt needs, if all of it is free now and the budget pays for it. It never
 * waits, but for the store's answer: whoever is in the room comes first.
 */
import { isThenable } from '../core/thenable.js'
import type { CallCost } from '../shared/permit-queue/ports.js'
import type { LimitReply } from '../shared/rate-limiter/limit-client.js'
import type { MaybePromise } from '../store/port.js'
import type { Hedger } from './hedger.js'
import type { CallAdmission, Machinery } from './machinery.js'
import type { LimitStage } from './shared-stages.js'

export function takeFree(
  machinery: Machinery,
  hedger: Hedger,
  lane: string,
  price: CallCost,
): MaybePromise<CallAdmission | undefined> {
  const { limits, dispatcher, clock } = machinery
  if (!isFree(machinery, lane, price)) return hedger.skip('busy')
  if (!hedger.pay()) return hedger.skip('budget')
  try {
    if (limits?.remote === true) return askStore(machinery, limits, hedger, lane, price)
    return dispatcher.tryNow(lane, price, clock.now()) ?? hedger.skip('busy')
  } catch {
    // The store is in trouble: the first attempt simply goes on.
    return hedger.skip('busy')
  }
}

/** It is no longer needed: what it holds goes back. */
export function giveBack(machinery: Machinery, lane: string, admission: CallAdmission): void {
  const { breaker, limits, slots } = machinery
  if (admission.breaker !== undefined) breaker?.exit(admission.breaker, 'ignored')
  if (admission.permit !== undefined) limits?.refund(admission.permit)
  slots.skip(lane)
  machinery.onFree()
}

/** A slot is kept for it meanwhile. */
function askStore(
  machinery: Machinery,
  limits: LimitStage,
  hedger: Hedger,
  lane: string,
  price: CallCost,
): MaybePromise<CallAdmission | undefined> {
  const { slots, clock, breaker, dispatcher } = machinery
  const askedMs = clock.now()
  const costs = dispatcher.costsOf(price)
  const reply = limits.take(lane, [costs], undefined, 0)
  slots.reserve(1, lane)

  function giveUp(): undefined {
    slots.giveUp(lane)
    machinery.onFree()
    return hedger.skip('busy')
  }

  function answered(trip: LimitReply): CallAdmission | undefined {
    if (trip.granted === 0) return giveUp()
    const permit = limits.createPermit(lane, costs, trip)
    const late = clock.now() - askedMs > limits.useWithinMs
    if (late || machinery.closed || breaker?.isClear(lane) === false) {
      limits.refund(permit)
      return giveUp()
    }
    slots.admit()
    return { breaker: breaker?.enter(lane) as CallAdmission['breaker'], permit }
  }

  return isThenable(reply) ? reply.then(answered, giveUp) : answered(reply)
}

/** Nobody waits, there is a slot, and neither the breaker nor the vendor is in the way. */
function isFree(machinery: Machinery, lane: string, price: CallCost): boolean {
  const { room, dispatcher, breaker, clock, closed } = machinery
  if (closed || room.length > 0) return false
  if (breaker !== undefined && !breaker.isClear(lane)) return false
  return dispatcher.spare(lane, price, clock.now()) > 0
}
