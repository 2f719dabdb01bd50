/** The job queue operations as scripts. Messages published by scripts wake workers. */
import type { Keys } from '../../keys.js'
import type {
  AddReply,
  AddRequest,
  Extended,
  QueueRef,
  QueueStore,
  ReserveRequest,
} from '../../queue-port.js'
import type { WaitMode } from '../connection/first-connection.js'
import type { ReplicaConfirmation } from '../connection/replica-confirmation.js'
import type { Script, ScriptRunner } from '../connection/runner.js'
import type { Subscribe } from '../connection/subscription.js'
import { SCRIPTS } from '../scripts.gen.js'
import { createJobWatchers } from './job-watchers.js'
import {
  breakerKey,
  COUNTS,
  type CountsWire,
  type JobStatusWire,
  type JobWire,
  type ReserveWire,
  readCounts,
  readFinished,
  readJob,
  readJobStatus,
  readReserved,
  reserveArgs,
  writeEnds,
} from './queue-wire.js'
import { limitKeys } from './redis-limits.js'

export interface RedisQueuesOptions {
  runner: ScriptRunner
  keys: Keys
  subscribe: Subscribe
  /**
   * Connection for jobs whose replicas have to confirm; other commands must not wait behind them.
   */
  replicaConfirmation: () => Promise<ReplicaConfirmation>
  /** Jobs read per priority to estimate the tenants. Default: 200. */
  tenantSample?: number
  /** Replaces the server's time in twin tests. */
  time?: () => string
}

const EXTENDED: readonly Extended[] = ['lost', 'kept', 'cancelled']

export function createRedisQueues({
  runner,
  keys,
  subscribe,
  replicaConfirmation,
  tenantSample = 200,
  time = () => '',
}: RedisQueuesOptions): QueueStore {
  /** Keys are built once and not for every round trip. */
  const known = new Map<string, Map<string, readonly string[]>>()
  function keysOf({ guard, queue }: QueueRef): readonly string[] {
    const ofGuard = known.get(guard) ?? new Map<string, readonly string[]>()
    const found = ofGuard.get(queue) ?? keys.queue(guard, queue)
    known.set(guard, ofGuard.set(queue, found))
    return found
  }
  function reserveKeys(request: ReserveRequest): string[] {
    const { guard, take, breaker } = request
    const more = [breakerKey(keys, guard, breaker?.lane), ...keysOf(request)]
    return limitKeys(keys, take, more)
  }
  const input = ({ lifeUs }: QueueRef, own: object) =>
    JSON.stringify({ life: lifeUs, wakes: keys.wakes, ...own })
  const changesOf = ({ guard, queue }: QueueRef) => ({ channel: keys.jobChanges, guard, queue })

  /**
   * After an error: deletes keys of the queue that have the wrong type. Returns whether there were
   * any.
   */
  async function repair(by: ScriptRunner, request: QueueRef, error: unknown): Promise<boolean> {
    if (!(error instanceof Error) || !error.message.includes('WRONGTYPE')) return false
    return (await by.run(SCRIPTS.repairQueue, keysOf(request), [time(), input(request, {})])) !== 0
  }

  /** For scripts that may run again after an error halfway. */
  async function run(
    by: ScriptRunner,
    request: QueueRef,
    script: Script,
    scriptKeys: readonly string[],
    args: readonly (string | number)[],
    waitMode?: WaitMode,
  ): Promise<unknown> {
    try {
      return await by.run(script, scriptKeys, args, waitMode)
    } catch (error) {
      if (await repair(by, request, error)) return by.run(script, scriptKeys, args)
      throw error
    }
  }

  async function add(by: ScriptRunner, request: AddRequest): Promise<AddReply> {
    const jobs = request.jobs.map((job) => [
      job.priority,
      job.delayUs,
      job.deadlineUs,
      job.key,
      job.tenant,
      job.cost,
      job.attempts,
    ])
    const { maxSize, maxPerTenant } = request
    const own = input(request, { most: maxSize, per_tenant: maxPerTenant, jobs })
    const args = [time(), own, ...request.jobs.map(({ data }) => data)]
    let reply: unknown
    try {
      reply = await by.run(SCRIPTS.addJobs, keysOf(request), args, 'patient')
    } catch (error) {
      // Not run again, because the first of the jobs may have been added and would be added twice.
      await repair(by, request, error)
      throw error
    }
    const [size, tenantSize, ...added] = reply as [number, number, ...(string | number)[]]
    const ids: { id: string; fresh: boolean }[] = []
    for (let at = 0; at < added.length; at += 2) {
      ids.push({ id: added[at] as string, fresh: added[at + 1] === 1 })
    }
    return { jobs: ids, size, ...(tenantSize >= 0 && { tenantSize }) }
  }

  async function readQueue(
    request: QueueRef,
    wanted: { id?: string; from?: number; count?: number; tenants?: number },
  ) {
    const own = { id: '', from: 0, count: 0, tenants: 0, sample: tenantSample, ...wanted }
    const args = [time(), input(request, own)]
    const reply = await run(runner, request, SCRIPTS.readQueue, keysOf(request), args, 'brief')
    const wire = reply as [...CountsWire, ...(JobWire | null)[]]
    return {
      counts: readCounts(wire.slice(0, COUNTS) as CountsWire),
      jobs: (wire.slice(COUNTS) as (JobWire | null)[]).flatMap((job) =>
        job ? [readJob(job)] : [],
      ),
    }
  }

  return {
    async add(request) {
      const { durable } = request
      if (durable === undefined) return add(runner, request)
      const { runner: own, confirm } = await replicaConfirmation()
      const reply = await add(own, request)
      const key = keysOf(request)[0] as string
      const replicas = await confirm(key, durable.replicas, durable.timeoutMs)
      return { ...reply, confirmed: replicas >= durable.replicas }
    },
    async reserve(request) {
      const scriptKeys = reserveKeys(request)
      const args = reserveArgs(request, keys, scriptKeys, time())
      const reply = await run(runner, request, SCRIPTS.reserveJobs, scriptKeys, args)
      return readReserved(reply as ReserveWire, request)
    },
    async finish(request) {
      const { breaker } = request
      const own = {
        has_breaker: breaker !== undefined,
        end_dead: request.deadUs,
        uncounted: request.uncountedTurns,
      }
      const args = [time(), input(request, own), ...writeEnds(request)]
      const scriptKeys = [breakerKey(keys, request.guard, breaker?.lane), ...keysOf(request)]
      const reply = await run(runner, request, SCRIPTS.finishJobs, scriptKeys, args)
      return readFinished(reply as number[])
    },
    async extend(request) {
      const leases = request.leases.map(({ id, turn, progress }) => [
        id,
        turn,
        progress === undefined ? 0 : 1,
      ])
      const own = input(request, { lease: request.leaseUs, leases, changes: changesOf(request) })
      const args = [time(), own, ...request.leases.map(({ progress }) => progress ?? '')]
      const reply = await run(runner, request, SCRIPTS.extendJobs, keysOf(request), args)
      return (reply as number[]).map((each) => EXTENDED[each] as Extended)
    },
    async job(request) {
      const { jobs } = await readQueue(request, { id: request.id })
      return jobs[0]
    },
    async jobStatus(request) {
      const args = [time(), input(request, { id: request.id })]
      const reply = await run(
        runner,
        request,
        SCRIPTS.readJobStatus,
        keysOf(request),
        args,
        'brief',
      )
      return reply === null ? undefined : readJobStatus(reply as JobStatusWire)
    },
    counts: async (request) => (await readQueue(request, { tenants: request.tenants ?? 0 })).counts,
    dead: async (request) => {
      const { from, count } = request
      return (await readQueue(request, { from, count })).jobs
    },
    async command(request) {
      const { kind: command, id, keepUs } = { id: '', keepUs: 0, ...request.command }
      const own = input(request, { command, id, keep: keepUs, changes: changesOf(request) })
      const args = [time(), own]
      const scriptKeys = keysOf(request)
      return (await run(runner, request, SCRIPTS.commandQueue, scriptKeys, args, 'patient')) === 1
    },
    onWake(worker, wake, onGap) {
      const listener = { onMessage: wake, onSubscribed: onGap }
      const subscription = subscribe(`${keys.wakes}${worker}`, listener)
      return () => subscription.close()
    },
    watch: createJobWatchers(keys.jobChanges, subscribe),
  }
}
