/** A job queue without a store: the transitions on one state, in virtual time. */
import { emptyBreaker } from '../src/store/breaker/breaker-state.js'
import type { BreakerSpec } from '../src/store/breaker-spec.js'
import type { LimitSpec } from '../src/store/limit-spec.js'
import { emptyGuard, emptyLane } from '../src/store/limits/lane-state.js'
import { addJobs } from '../src/store/queue/add-jobs.js'
import { extendJobs, finishJobs } from '../src/store/queue/finish-jobs.js'
import {
  commandQueue,
  countJobs,
  listDead,
  readJob,
  readJobStatus,
} from '../src/store/queue/maintenance.js'
import { emptyQueue } from '../src/store/queue/queue-state.js'
import { reserveJobs } from '../src/store/queue/reserve-jobs.js'
import type {
  AddRequest,
  FinishRequest,
  JobEnd,
  NewJob,
  QueueCommand,
  ReserveRequest,
} from '../src/store/queue-port.js'

export const START_US = 1_800_000_000_000_000
export const SECOND_US = 1_000_000
export const HOUR_US = 3_600 * SECOND_US
export const LEASE_US = 10 * SECOND_US

const REF = { guard: 'g', queue: 'q', lifeUs: 24 * HOUR_US }
const JOB: NewJob = {
  ...{
    data: '',
    priority: 1,
    delayUs: 0,
    deadlineUs: 0,
    key: '',
    tenant: '',
    cost: {},
    attempts: 2,
  },
}

export function createTestQueue(limits: readonly LimitSpec[] = [], breakerSpec?: BreakerSpec) {
  const state = emptyQueue()
  const [lane, guard] = [emptyLane(), emptyGuard()]
  const breaker = breakerSpec && emptyBreaker()
  const ref = breakerSpec && { guard: 'g', lane: 'a', spec: breakerSpec }
  let nowUs = START_US
  const command = (given: QueueCommand) => commandQueue(state, given, nowUs)
  return {
    ...{ state, lane, guard, breaker, command },
    pass(us: number) {
      nowUs += us
    },
    add(jobs: readonly Partial<NewJob>[], own: Partial<AddRequest> = {}) {
      const request = { ...REF, maxSize: 1_000, maxPerTenant: 1_000, ...own }
      return addJobs(state, { ...request, jobs: jobs.map((each) => ({ ...JOB, ...each })) }, nowUs)
    },
    reserve(worker: string, own: Partial<ReserveRequest> = {}) {
      const request: ReserveRequest = {
        ...{ ...REF, worker, wanted: 1, leaseUs: LEASE_US, parkUs: HOUR_US, agingUs: HOUR_US },
        take: { guard: 'g', lane: 'a', limits, version: 0, units: limits.map(({ id }) => id) },
        ...{ deadUs: HOUR_US, keep: 0, breaker: ref, probes: [], ...own },
      }
      return reserveJobs(state, { lane, guard, breaker }, request, nowUs)
    },
    finish(
      ends: readonly (Partial<JobEnd> & Pick<JobEnd, 'id' | 'turn'>)[],
      own: Partial<FinishRequest> = {},
    ) {
      const usual = { kind: 'done', text: '', delayUs: 0, generation: -1, probe: false } as const
      const request = {
        ...REF,
        resultUs: HOUR_US,
        deadUs: HOUR_US,
        uncountedTurns: 1,
        breaker: ref,
        ...own,
      }
      const all = ends.map((each) => ({ ...usual, ...each }))
      return finishJobs(state, breaker, { ...request, ends: all }, nowUs)
    },
    extend: (id: string, turn: number, progress?: string) =>
      extendJobs(state, { ...REF, leases: [{ id, turn, progress }], leaseUs: LEASE_US }, nowUs)[0],
    cancel: (id: string, keepUs = HOUR_US) => command({ kind: 'cancel', id, keepUs }).reply,
    counts: (tenants?: number) => countJobs(state, nowUs, tenants),
    read: (id: string) => readJob(state, id, nowUs),
    status: (id: string) => readJobStatus(state, id),
    dead: (from = 0, count = 100) => listDead(state, { from, count }, nowUs),
  }
}
