/**
 * Async requests: accepted with 202 and a URL, executed by any gateway when the vendor has
 * capacity, and read by their caller. There is a job queue for each lane that the configuration
 * names, because vendors count lanes separately.
 */
import { createHash } from 'node:crypto'
import { type Clock, onEvent, type Priority, type Spillway } from 'spillway'
import { clientNetwork } from 'spillway/http'
import { sizeOf } from 'spillway/internal'
import type { AddOptions } from 'spillway/shared'
import type { QueueConfig } from '../config/config.js'
import type { AsyncRequests, GatewayAnswer, JobRequestListener } from '../request/async-requests.js'
import type { Caller } from '../request/callers.js'
import type { ClientRequest, ClientResponse } from '../request/client-http.js'
import { deadlineMs, invalidDeadline } from '../request/deadline.js'
import type { RoutedRequest } from '../request/routed-request.js'
import { uniqueId } from '../response/privacy.js'
import type { ConfigVersions } from '../routing/config-versions.js'
import type { Target } from '../routing/target.js'
import type { Vendor } from '../vendor/vendor.js'
import { JobEndpoints } from './job-endpoints.js'
import { JOBS_PATH } from './job-status.js'
import type { LaneQueue } from './lane-queue.js'
import { prefersAsync } from './prefer.js'
import { retryUnavailable } from './retry-unavailable.js'
import { runRequest } from './run-request.js'
import type { StoredAnswer } from './stored-answer.js'
import { CREDENTIAL, ownerOf, type StoredRequest, storeRequest } from './stored-request.js'

/** Longer than any grace period: the caller of `drain` decides when it ends. */
const LONGEST_GRACE_MS = 86_400_000

export class Jobs implements AsyncRequests {
  readonly #versions: Pick<ConfigVersions, 'current'>
  readonly #byName = new Map<string, LaneQueue>()
  readonly #byLane = new Map<string, LaneQueue>()
  readonly #clock: Clock
  readonly #endpoints: JobEndpoints
  readonly #stopListening: () => void

  constructor(
    queues: readonly QueueConfig[],
    versions: Pick<ConfigVersions, 'current'>,
    spillway: Spillway,
    clock: Clock,
  ) {
    this.#versions = versions
    this.#clock = clock
    for (const config of queues) this.#open(config, spillway)
    this.#endpoints = new JobEndpoints(versions, this.#byName, clock)
    this.#stopListening = onEvent((event) => {
      if (event.type.startsWith('job.') && 'id' in event)
        this.#endpoints.refresh(event.name, event.id)
    })
  }

  owns(path: string): boolean {
    return path.startsWith(JOBS_PATH)
  }

  answer(
    request: ClientRequest,
    response: ClientResponse,
    path: string,
    listener: JobRequestListener,
  ): Promise<GatewayAnswer | undefined> {
    return this.#endpoints.answer(request, response, path, listener)
  }

  /** Jobs use the first target of their route and no fallback, because they can wait. */
  defer(
    request: ClientRequest,
    routed: RoutedRequest,
    target: Target | undefined,
  ): Promise<GatewayAnswer> | undefined {
    if (!prefersAsync(request.headers.prefer)) return undefined
    const { parsed, facts } = routed
    const { body } = parsed
    if (target === undefined || body.kind !== 'held') return undefined
    // Refused: a client's key for the vendor must not be stored.
    if (bringsKey(request, routed, target)) return undefined
    const { vendor, config } = target
    const lane = vendor.laneOf(config.model ?? facts.model, config)
    const queue = this.#byLane.get(laneKey(vendor.name, lane))
    if (queue === undefined || body.bytes.length > queue.config.maxRequestBytes) return undefined
    return this.#take(request, routed, target, queue)
  }

  /** Starts the workers. */
  begin(): void {
    for (const queue of this.#byName.values()) {
      const { concurrency } = queue.config
      if (concurrency === 0) continue
      const { config } = queue
      queue.jobs.work(
        async (job, context) => {
          // A job uses the configuration it started with until it ends.
          const version = this.#versions.current
          const vendor = version.vendors.get(config.vendor) as Vendor
          version.enter()
          try {
            return await runRequest(job, context, { config, vendor, clock: this.#clock })
          } finally {
            version.leave()
          }
        },
        { concurrency },
      )
    }
  }

  /**
   * Stops taking jobs; resolves when running jobs have ended. A second call may shorten the grace period. Jobs that
   * exceed it are returned to the queue.
   */
  async drain(graceMs = LONGEST_GRACE_MS): Promise<void> {
    const queues = [...this.#byName.values()]
    await Promise.all(queues.map(({ jobs }) => jobs.close({ graceMs })))
  }

  close(): void {
    this.#stopListening()
  }

  #open(config: QueueConfig, spillway: Spillway): void {
    const { name, key, model, settings } = config
    const versions = this.#versions
    const vendorNow = () => versions.current.vendors.get(config.vendor) as Vendor
    const vendor = vendorNow()
    const lane = vendor.laneOf(model, { vendor: vendor.name, key, model })
    const jobs = spillway.jobQueue<StoredRequest, StoredAnswer>(name, {
      ...settings,
      guard: vendor.guard,
      ...(lane !== undefined && { lane }),
    })
    const queue = {
      config,
      // A later configuration may route the request differently.
      get vendor() {
        return vendorNow()
      },
      lane,
      jobs,
    }
    this.#byName.set(name, queue)
    this.#byLane.set(laneKey(vendor.name, lane), queue)
  }

  async #take(
    request: ClientRequest,
    routed: RoutedRequest,
    target: Target,
    { config, vendor, lane, jobs }: LaneQueue,
  ): Promise<GatewayAnswer> {
    const { caller, callerKey, harmless, facts, generates } = routed
    const { headers } = request
    const owner = ownerOf(callerKey, caller.user)
    const later = { ...facts, prompt: sizeOf(facts.prompt) }
    const cost = generates ? vendor.costOf(later, config.model, lane) : undefined
    const stored = storeRequest(request, routed, target, owner, cost)
    const { 'idempotency-key': given } = headers
    const options: AddOptions = {
      priority: priorityOf(caller, config),
      tenant: caller.user,
      timeoutMs: timeOf(headers['spillway-deadline-ms'], config.timeoutMs),
      // Unique per caller, because callers may choose the same key.
      key: given === undefined ? uniqueId() : keyOf(owner, String(given)),
      ...(cost && { cost }),
      ...(!harmless && { attempts: 1 }),
      as: {
        user: caller.user,
        tier: caller.tier,
        ip: clientNetwork(request.socket.remoteAddress ?? ''),
        endpoint: routed.path,
      },
    }
    // Adding a job with the same key again has no effect, so this may be repeated.
    const { id, fresh } = await retryUnavailable(() => jobs.add(stored, options), this.#clock)
    // With a generated key, the job can only exist because an earlier attempt added it.
    return this.#endpoints.accepted(
      config.name,
      { id, fresh: fresh || given === undefined },
      stored.mark,
    )
  }
}

function priorityOf({ tier = '', priority }: Caller, { priorities }: QueueConfig): Priority {
  return Object.hasOwn(priorities, tier) ? (priorities[tier] as Priority) : priority
}

function bringsKey(
  { rawHeaders, headers }: ClientRequest,
  { callerKey }: RoutedRequest,
  { forwarded }: Target,
): boolean {
  if (forwarded.credentials && callerKey !== undefined) return true
  const passed = forwarded.of(rawHeaders, headers.connection)
  return passed.some((name, index) => index % 2 === 0 && CREDENTIAL.test(name))
}

function laneKey(vendor: string, lane: string | undefined): string {
  return JSON.stringify([vendor, lane ?? null])
}

function keyOf(owner: string, given: string): string {
  return createHash('sha256').update(`${owner} ${given}`).digest('base64url')
}

/** The time that the client has set, but at most the job queue's `timeoutMs`. */
function timeOf(header: string | string[] | undefined, mostMs: number): number {
  const requestedMs = deadlineMs(header)
  if (requestedMs < 1) throw invalidDeadline('must be at least 1')
  return requestedMs < mostMs ? requestedMs : mostMs
}
