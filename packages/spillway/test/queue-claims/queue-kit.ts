/** A queue per test without a pod: the commands that a worker sends to the store. */
import type { Store } from 'spillway/shared'
import type { LimitSpec } from '../../src/store/limit-spec.js'
import type {
  JobEnd,
  NewJob,
  QueueRef,
  ReservedJob,
  ReserveReply,
  ReserveRequest,
} from '../../src/store/queue-port.js'
import type { Fleet } from '../limit-claims/fleet.js'

let queues = 0

export const SECOND = 1_000_000

/** Three times the usual round trip time, and short enough to wait for. */
export const LEASE_US = 300_000

export function createQueueKit(fleet: Fleet, given: Partial<ReserveRequest> = {}) {
  const store: Store = fleet.store()
  const number = ++queues
  const ref: QueueRef = { guard: `g${number}`, queue: 'q', lifeUs: 3_600 * SECOND }
  const take = { guard: ref.guard, lane: 'a', limits: [] as LimitSpec[], version: 0, units: [] }
  const lives = { resultUs: 60 * SECOND, deadUs: 60 * SECOND, breaker: undefined }
  return {
    store,
    ref,
    async add(job: Partial<NewJob> = {}, maxSize = 1_000): Promise<string | undefined> {
      const reply = await store.queues.add({ ...ref, jobs: [newJob(job)], maxSize })
      return reply.jobs[0]?.id
    },
    async addMany(jobs: Partial<NewJob>[]): Promise<string[]> {
      const reply = await store.queues.add({ ...ref, jobs: jobs.map(newJob), maxSize: 100_000 })
      return reply.jobs.map(({ id }) => id)
    },
    async reserve(wanted = 1, own: Partial<ReserveRequest> = {}): Promise<ReserveReply> {
      return store.queues.reserve({
        ...ref,
        worker: 'w',
        wanted,
        leaseUs: 60 * SECOND,
        parkUs: 0,
        agingUs: 3_600 * SECOND,
        deadUs: 60 * SECOND,
        take,
        keep: 0,
        breaker: undefined,
        probes: [],
        ...given,
        ...own,
      })
    },
    async finish(
      job: Pick<ReservedJob, 'id' | 'turn'>,
      end: Partial<JobEnd> = {},
      own: object = {},
    ) {
      const { id, turn } = job
      const whole = { kind: 'done' as const, text: '', delayUs: 0, generation: -1, probe: false }
      const ends = [{ ...whole, id, turn, ...end }]
      const [answer] = await store.queues.finish({ ...ref, ...lives, ...own, ends })
      return answer
    },
    async extend(job: Pick<ReservedJob, 'id' | 'turn'>, progress?: string) {
      const leases = [{ id: job.id, turn: job.turn, progress }]
      return (await store.queues.extend({ ...ref, leaseUs: 60 * SECOND, leases }))[0]
    },
    counts: async () => store.queues.counts(ref),
    job: async (id: string) => store.queues.job({ ...ref, id }),
    dead: async () => store.queues.dead({ ...ref, from: 0, count: 100 }),
    command: async (command: Parameters<Store['queues']['command']>[0]['command']) =>
      store.queues.command({ ...ref, command }),
  }
}

function newJob(job: Partial<NewJob>): NewJob {
  return {
    data: '{}',
    priority: 2,
    delayUs: 0,
    deadlineUs: 0,
    key: '',
    tenant: '',
    cost: {},
    attempts: 3,
    ...job,
  }
}

export function limitOf(own: Partial<LimitSpec>): LimitSpec {
  return {
    id: 'requests',
    algorithm: 'sliding-window',
    limit: 10,
    windowUs: 3_600 * SECOND,
    slices: 30,
    burst: 0,
    span: 'lane',
    ...own,
  }
}
