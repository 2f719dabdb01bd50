/** A breaker without a store: the transitions on one state, in virtual time. */
import { type BreakerState, emptyBreaker } from '../src/store/breaker/breaker-state.js'
import {
  type BreakerKept,
  commandBreaker,
  reportOutcomes,
  syncBreaker,
  takeProbes,
} from '../src/store/breaker/transitions.js'
import { type BreakerSpec, FAILURE } from '../src/store/breaker-spec.js'
import type { BreakerCommand, BreakerReport } from '../src/store/port.js'

export const START_US = 1_900_000_000_000_000
export const SECOND = 1_000_000
export const CLOSED = 0
export const OPEN = 1
export const HALF_OPEN = 2

/** A breaker that trips at the second consecutive failure, and its clock. */
export function createTestBreaker(own: Partial<BreakerSpec> = {}) {
  const spec: BreakerSpec = {
    consecutive: 2,
    failureRate: 0,
    slowRate: 0,
    windowUs: 30 * SECOND,
    windowCalls: 0,
    minimumCalls: 1,
    openUs: 10 * SECOND,
    openFactor: 1,
    maxOpenUs: 100 * SECOND,
    probes: 3,
    successes: 2,
    probeLeaseUs: 5 * SECOND,
    quorum: 1,
    ...own,
  }
  const ref = { guard: 'g', lane: 'l', spec }
  let state = emptyBreaker()
  let nowUs = START_US
  let life: number | undefined
  let publications = 0

  function run<R, T>(
    transition: (state: BreakerState, request: R, now: number) => BreakerKept<T>,
    request: R,
  ): T {
    const { reply, lifeUs, published } = transition(state, request, nowUs)
    life = lifeUs
    if (published !== undefined) publications++
    return reply
  }
  const sync = (renew: string[] = []) => run(syncBreaker, { ...ref, renew })
  const report = (request: Partial<BreakerReport>) =>
    run((each, full: BreakerReport, now) => reportOutcomes(each, full, now, 1), {
      ...ref,
      pod: 'p',
      sequence: 1,
      generation: sync().generation,
      outcomes: [],
      probes: [],
      ...request,
    })
  const fixture = {
    sync,
    report,
    fail: (times: number) => report({ outcomes: [[FAILURE, times]] }),
    probe: (...probes: string[]) => run(takeProbes, { ...ref, probes }),
    endProbe: (probe: string, kind: number) => report({ probes: [[probe, kind]] }),
    command: (command: BreakerCommand['command']) => run(commandBreaker, { ...ref, command }),
    pass(us: number) {
      nowUs += us
    },
    lose() {
      state = emptyBreaker()
    },
    get lifeUs() {
      return life
    },
    /** Number of published changes. */
    get publications() {
      return publications
    },
    /** Fails until the breaker is half-open. */
    breakDown() {
      fixture.fail(2)
      nowUs = sync().untilUs
      return sync()
    },
  }
  return fixture
}
