/** Job queues in one process: the transitions on a map. Workers are woken at once. */
import type { BreakerState } from '../breaker/breaker-state.js'
import type { BreakerKept } from '../breaker/transitions.js'
import type { LaneTransition } from '../limits/transitions.js'
import type { BreakerRef, LaneRef } from '../port.js'
import { addJobs, type Woken } from '../queue/add-jobs.js'
import { extendJobs, finishJobs } from '../queue/finish-jobs.js'
import { commandQueue, countJobs, listDead, readJob, readJobStatus } from '../queue/maintenance.js'
import { ACTIVE, emptyQueue, type QueueState } from '../queue/queue-state.js'
import { type ReserveKept, reserveJobs } from '../queue/reserve-jobs.js'
import type { JobChange, JobWatcher, QueueRef, QueueStore, ReserveRequest } from '../queue-port.js'
import { ExpiringMap } from './expiring-map.js'

/** State that a queue changes in the same step: the limits of its lane, and the breaker. */
export interface QueueNeighbours {
  limits<R extends LaneRef, T>(request: R, transition: LaneTransition<R, T>): T
  breaker<R extends BreakerRef, T>(
    request: R,
    transition: (state: BreakerState, request: R, now: number) => BreakerKept<T>,
  ): T
}

export function createMemoryQueues(nowUs: () => number, near: QueueNeighbours): QueueStore {
  const queues = new ExpiringMap<QueueState>()
  const sleepers = new Map<string, () => void>()
  const watchers = new Set<JobWatcher>()

  function queueOf({ guard, queue, lifeUs }: QueueRef): QueueState {
    const now = nowUs()
    const key = `${guard}\0${queue}`
    const state = queues.get(key, now) ?? emptyQueue()
    queues.prolong(key, state, now, now + lifeUs)
    return state
  }

  /** After the caller has its reply. */
  function wake<T>({ reply, wakes }: Woken<T>): T {
    for (const worker of wakes) queueMicrotask(() => sleepers.get(worker)?.())
    return reply
  }

  /** After the caller has its reply. */
  function publish(kind: JobChange['kind'], { guard, queue }: QueueRef, id: string): void {
    queueMicrotask(() => {
      for (const each of watchers) each.onChange({ kind, guard, queue, id })
    })
  }

  function reserve(request: ReserveRequest): ReserveKept {
    const { breaker: ref } = request
    let all: ReserveKept | undefined
    near.limits(request.take, (lane, guard, _, now, member) => {
      const step = (breaker: BreakerState | undefined) => {
        all = reserveJobs(queueOf(request), { lane, guard, member, breaker }, request, now)
        return all
      }
      if (ref === undefined) return step(undefined).limits
      near.breaker(ref, (breaker) => step(breaker).breaker as NonNullable<ReserveKept['breaker']>)
      return (all as ReserveKept).limits
    })
    return all as ReserveKept
  }

  return {
    add: (request) => {
      const reply = wake(addJobs(queueOf(request), request, nowUs()))
      // There are no replicas to wait for.
      return request.durable === undefined ? reply : { ...reply, confirmed: true }
    },
    reserve: (request) => wake(reserve(request)),
    finish: (request) => {
      const { breaker: ref } = request
      const finish = (breaker: BreakerState | undefined) =>
        wake(finishJobs(queueOf(request), breaker, request, nowUs()))
      if (ref === undefined) return finish(undefined)
      return near.breaker(ref, (breaker) => ({ reply: finish(breaker) }))
    },
    extend: (request) => {
      const reply = extendJobs(queueOf(request), request, nowUs())
      for (const [index, { id, progress }] of request.leases.entries()) {
        if (progress !== undefined && reply[index] !== 'lost') publish('progress', request, id)
      }
      return reply
    },
    job: (request) => readJob(queueOf(request), request.id, nowUs()),
    jobStatus: (request) => readJobStatus(queueOf(request), request.id),
    counts: (request) => countJobs(queueOf(request), nowUs(), request.tenants),
    dead: (request) => listDead(queueOf(request), request, nowUs()),
    command: (request) => {
      const { command } = request
      const state = queueOf(request)
      const reply = wake(commandQueue(state, command, nowUs()))
      if (command.kind === 'cancel' && state.jobs.get(command.id)?.state === ACTIVE) {
        publish('cancel', request, command.id)
      }
      return reply
    },
    onWake(worker, run) {
      sleepers.set(worker, run)
      return () => {
        sleepers.delete(worker)
      }
    },
    watch(watcher) {
      watchers.add(watcher)
      return () => {
        watchers.delete(watcher)
      }
    },
  }
}
