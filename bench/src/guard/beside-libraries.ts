/** Cost of an unobstructed call, compared with libraries that have some of the stages. */
import { callOptions, openGuard } from '../all-stages.js'
import { awaitEach, type Comparison, perSecond } from '../measure.js'
import { peerName } from '../peer-name.js'
import { createCockatiel, heedful, openOpossum, work } from './contenders.js'

export const guardVsOpossum: Comparison = {
  name: 'guard-vs-opossum',
  what: 'a call through nine stages; peer: breaker, timeout, capacity',
  target: 1,
  peerName: peerName('opossum'),
  unit: 'calls/s',
  prepare(preparation) {
    const our = openGuard(preparation)
    const their = openOpossum(preparation)
    return {
      ours: perSecond(awaitEach(20_000, () => our.run(work, callOptions()))),
      peer: perSecond(awaitEach(20_000, () => their.fire())),
    }
  },
}

export const guardVsCockatiel: Comparison = {
  name: 'guard-vs-cockatiel',
  what: 'a call through nine stages; peer: retry, breaker, bulkhead, timeout',
  target: 8,
  peerName: peerName('cockatiel'),
  unit: 'calls/s',
  prepare(preparation) {
    const our = openGuard(preparation)
    const their = createCockatiel()
    return {
      ours: perSecond(awaitEach(10_000, () => our.run(work, callOptions()))),
      peer: perSecond(awaitEach(10_000, () => their.execute(work))),
    }
  },
}

export const guardSignalVsCockatiel: Comparison = {
  name: 'guard-signal-vs-cockatiel',
  what: 'the same, with a function that reads its signal',
  target: 2,
  peerName: peerName('cockatiel'),
  unit: 'calls/s',
  prepare(preparation) {
    const our = openGuard(preparation)
    const their = createCockatiel()
    return {
      ours: perSecond(awaitEach(10_000, () => our.run(heedful, callOptions()))),
      peer: perSecond(awaitEach(10_000, () => their.execute(heedful))),
    }
  },
}
