/** Cost of a call that is refused at once, by each of three stages. */
import type { Guard } from 'spillway'
import {
  ALL_STAGES,
  AN_HOUR_MS,
  callOptions,
  MINIMUM_CALLS,
  openGuard,
  PLACES,
} from '../all-stages.js'
import { type Comparison, catchEach, type Preparation } from '../measure.js'
import { peerName } from '../peer-name.js'
import { openOpossum, work } from './contenders.js'

/** Spillway refuses by the stage under test; the peer refuses because its circuit is open. */
function refusal(
  stage: string,
  code: string,
  what: string,
  prepareGuard: (preparation: Preparation) => Promise<Guard>,
): Comparison {
  return {
    name: `refusal-${stage}`,
    what: `a refused call: ${what}; peer: an open circuit`,
    target: 4,
    peerName: peerName('opossum'),
    unit: 'ns/op',
    async prepare(preparation) {
      const our = await prepareGuard(preparation)
      const their = openOpossum(preparation)
      their.open()
      return {
        ours: catchEach(10_000, () => our.run(work, callOptions()), code),
        peer: catchEach(10_000, () => their.fire(), 'EOPENBREAKER'),
      }
    },
  }
}

const never = () => new Promise<never>(() => {})
const ignore = () => {}

export const refusalShed = refusal('shed', 'SHED', 'the queue is full', async (preparation) => {
  const guard = openGuard(preparation, {
    options: {
      shed: { maxQueue: 1 },
      queue: { size: PLACES, timeoutMs: AN_HOUR_MS },
      concurrency: { limit: 1 },
      timeout: { callMs: AN_HOUR_MS },
    },
  })
  // One call holds the slot, and one fills the queue.
  for (let i = 0; i < 2; i++) guard.run(never, callOptions()).catch(ignore)
  return guard
})

export const refusalBreaker = refusal(
  'breaker',
  'CIRCUIT_OPEN',
  'the breaker is open',
  async (at) => {
    const guard = openGuard(at)
    const fail = () => Promise.reject(new Error('down'))
    for (let i = 0; i < MINIMUM_CALLS; i++) {
      await guard.run(fail, { ...callOptions(), idempotent: false }).catch(ignore)
    }
    return guard
  },
)

export const refusalLimit = refusal(
  'limit',
  'VENDOR_LIMITED',
  'the limit is used up',
  async (at) => {
    const [requests, tokens] = ALL_STAGES.limits
    const limits = [{ ...requests, limit: 1, windowMs: AN_HOUR_MS }, tokens]
    const guard = openGuard(at, { options: { limits } })
    await guard.run(work, callOptions())
    // The first call is not refused; it opens the circuit.
    await guard.run(work, { ...callOptions(), timeoutMs: 1 }).catch(ignore)
    return guard
  },
)
