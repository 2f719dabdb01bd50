/** Rules of the job queue's transitions that only show in the state or in exact times. */
import { describe, expect, it } from 'vitest'
import type { LimitSpec } from '../limit-spec.js'
import { emptyGuard, emptyLane } from '../limits/lane-state.js'
import type { NewJob, ReserveRequest } from '../queue-port.js'
import { addJobs } from './add-jobs.js'
import { extendJobs, finishJobs } from './finish-jobs.js'
import { commandQueue, countJobs, readJob } from './maintenance.js'
import { emptyQueue } from './queue-state.js'
import { reserveJobs } from './reserve-jobs.js'

const START_US = 1_800_000_000_000_000
const SECOND_US = 1_000_000
const HOUR_US = 3_600 * SECOND_US
const LEASE_US = 10 * SECOND_US

function setup(limits: readonly LimitSpec[] = []) {
  const state = emptyQueue()
  const [lane, guard] = [emptyLane(), emptyGuard()]
  const ref = { guard: 'g', queue: 'q', lifeUs: 24 * HOUR_US }
  let nowUs = START_US
  return {
    state,
    pass(us: number) {
      nowUs += us
    },
    add(count: number, job: Partial<NewJob> = {}) {
      const usual = { data: '', priority: 1, delayUs: 0, deadlineUs: 0, key: '', tenant: '' }
      const jobs = Array.from({ length: count }, () => {
        return { ...usual, cost: {}, attempts: 2, ...job }
      })
      const request = { ...ref, jobs, maxSize: 1_000, maxPerTenant: 1_000 }
      const { reply, wakes } = addJobs(state, request, nowUs)
      return { ids: reply.jobs.map(({ id }) => id), wakes }
    },
    reserve(worker: string, wanted = 1, keep = 0) {
      const request: ReserveRequest = {
        ...ref,
        ...{
          worker,
          wanted,
          leaseUs: LEASE_US,
          parkUs: HOUR_US,
          agingUs: HOUR_US,
          deadUs: HOUR_US,
        },
        take: { guard: 'g', lane: 'a', limits, version: 0, units: limits.map(({ id }) => id) },
        ...{ keep, breaker: undefined, probes: [] },
      }
      return reserveJobs(state, { lane, guard, breaker: undefined }, request, nowUs).reply
    },
    end(id: string, turn: number, kind: 'dead' | 'released') {
      const each = { id, turn, kind, text: '', delayUs: 0, generation: -1, probe: false }
      const times = { resultUs: HOUR_US, deadUs: HOUR_US, uncountedTurns: 1, breaker: undefined }
      return finishJobs(state, undefined, { ...ref, ends: [each], ...times }, nowUs).reply[0]
    },
    command: (kind: 'cancel' | 'replay', id: string) =>
      commandQueue(
        state,
        kind === 'cancel' ? { ...ref, kind, id, keepUs: HOUR_US } : { ...ref, kind, id },
        nowUs,
      ).reply,
    extend: (id: string, turn: number) =>
      extendJobs(state, { ...ref, leases: [{ id, turn }], leaseUs: LEASE_US }, nowUs)[0],
    counts: () => countJobs(state, nowUs),
    read: (id: string) => readJob(state, id, nowUs),
  }
}

describe('transitions of the job queue', () => {
  it('one idle worker requests jobs when a lease expires, the other a second later', () => {
    const { add, reserve, pass } = setup()
    add(1)
    expect(reserve('a').jobs).toHaveLength(1)
    pass(SECOND_US)
    expect(reserve('a').waitUs).toBe(LEASE_US - SECOND_US)
    expect(reserve('b').waitUs).toBe(LEASE_US)
  })

  it('a delayed job wakes a worker only if no worker will request jobs by its time', () => {
    const { add, reserve } = setup()
    add(1, { delayUs: 10 * SECOND_US })
    reserve('a')
    reserve('b')
    expect(add(1, { delayUs: 20 * SECOND_US }).wakes).toEqual([])
    expect(add(1, { delayUs: 5 * SECOND_US }).wakes).toHaveLength(1)
  })

  it('a worker removes at most 100 jobs with a passed deadline at once', () => {
    const { add, reserve, pass, counts } = setup()
    add(150, { deadlineUs: SECOND_US })
    pass(2 * SECOND_US)
    reserve('a', 5)
    expect(counts()).toMatchObject({ waiting: 50, dead: 100 })
    reserve('a', 5)
    expect(counts()).toMatchObject({ waiting: 0, dead: 150 })
  })

  it('a cancelled job whose worker stops ends as cancelled', () => {
    const { add, reserve, command, pass, read } = setup()
    const [id = ''] = add(1).ids
    reserve('a')
    expect(command('cancel', id)).toBe(true)
    pass(LEASE_US)
    expect(reserve('b').jobs).toEqual([])
    expect(read(id)?.state).toBe('cancelled')
  })

  it('a job that is replayed from the dead letters starts anew, without its deadline', () => {
    const { add, reserve, end, command, pass } = setup()
    const [id = ''] = add(1, { deadlineUs: 5 * SECOND_US, attempts: 1 }).ids
    reserve('a')
    // The one turn that does not count as an attempt.
    expect(end(id, 1, 'released')).toBe('again')
    reserve('a')
    expect(end(id, 2, 'dead')).toBe('dead')
    pass(10 * SECOND_US)
    expect(command('replay', id)).toBe(true)
    expect(reserve('a').jobs[0]).toMatchObject({ id, attempt: 1, uncounted: 0, leftUs: 0 })
    expect(end(id, 3, 'released')).toBe('again')
  })

  it('a lease that was extended expires later', () => {
    const { add, reserve, extend, pass } = setup()
    const [id = ''] = add(1).ids
    reserve('a')
    pass(LEASE_US - 1)
    expect(extend(id, 1)).toBe('kept')
    pass(LEASE_US - 1)
    expect(reserve('b').jobs).toEqual([])
    pass(1)
    expect(reserve('b').jobs).toHaveLength(1)
  })

  it.for(['sliding-window', 'fixed-window'] as const)(
    'jobs beside calls are spread over a %s, and one that is larger than its part starts in an unused part',
    (algorithm) => {
      const window = { windowUs: 10 * SECOND_US, slices: 10, burst: 0, span: 'lane' } as const
      const { add, reserve, pass } = setup([{ ...window, id: 'requests', algorithm, limit: 20 }])
      add(3, { cost: { requests: 8 } })
      const { jobs, blocked, take } = reserve('a', 3, 0.1)
      expect(jobs).toHaveLength(1)
      expect(blocked).toBe('limited')
      pass(take.waitUs - 1)
      expect(reserve('a', 3, 0.1).jobs).toHaveLength(0)
      pass(1)
      expect(reserve('a', 3, 0.1).jobs).toHaveLength(1)
    },
  )
})
