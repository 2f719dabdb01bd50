/** HTTP endpoints of async requests: status, result, events and cancellation of a job. */

import type { Clock } from 'spillway'
import type { AddedJob } from 'spillway/shared'
import type { GatewayAnswer, JobRequestListener } from '../request/async-requests.js'
import type { ClientRequest, ClientResponse } from '../request/client-http.js'
import { KEY_HEADERS } from '../request/key-headers.js'
import { requestTarget } from '../request/validation/request-url.js'
import { RequestError } from '../response/errors.js'
import type { ConfigVersions } from '../routing/config-versions.js'
import {
  addressOf,
  describeJob,
  describeNew,
  hasEnded,
  JOBS_PATH,
  type KeptJob,
  POLL_SECONDS,
} from './job-status.js'
import { JobStream } from './job-stream.js'
import { JobStreams } from './job-streams.js'
import type { LaneQueue } from './lane-queue.js'
import { retryUnavailable } from './retry-unavailable.js'
import { ownerOf, restoreBytes } from './stored-request.js'

const EVENTS = 'text/event-stream'
const ID = /^\d{1,20}$/

interface Found {
  readonly queue: LaneQueue
  readonly job: KeptJob
}

export class JobEndpoints {
  readonly #versions: Pick<ConfigVersions, 'current'>
  readonly #queues: ReadonlyMap<string, LaneQueue>
  readonly #clock: Clock
  readonly #streams = new JobStreams()

  constructor(
    versions: Pick<ConfigVersions, 'current'>,
    queues: ReadonlyMap<string, LaneQueue>,
    clock: Clock,
  ) {
    this.#versions = versions
    this.#queues = queues
    this.#clock = clock
  }

  /** Called when this gateway has changed the job: its streams read it at once. */
  refresh(queue: string, id: string): void {
    this.#streams.refresh(`${queue} ${id}`)
  }

  /** A job that existed before must be for an equal request; otherwise the idempotency key was reused. */
  async accepted(name: string, { id, fresh }: AddedJob, mark: string): Promise<GatewayAnswer> {
    const reading = this.#queues.get(name)?.jobs.job(id)
    // The job was added, so a failure to read it is ignored.
    const job = await (fresh ? reading?.catch(() => undefined) : reading)
    if (!fresh && job !== undefined && job.data?.mark !== mark) throw keyReused()
    const headers = {
      location: addressOf(name, id),
      'preference-applied': 'respond-async',
      'spillway-decision': `deferred;queue="${name}"${fresh ? '' : ';known=?1'}`,
    }
    const body = job === undefined ? describeNew(name, id) : describeJob(name, job)
    return pending(202, body, headers)
  }

  async answer(
    request: ClientRequest,
    response: ClientResponse,
    path: string,
    listener: JobRequestListener,
  ): Promise<GatewayAnswer | undefined> {
    const [name = '', id = '', what, ...more] = path.slice(JOBS_PATH.length).split('/')
    const isResult = what === 'result'
    if (more.length > 0 || (what !== undefined && !isResult)) throw noJob()
    const found = await this.#find(request, decoded(name), id, listener)
    const { method = 'GET' } = request
    if (method === 'DELETE' && !isResult) return this.#cancel(found)
    if (method !== 'GET') throw notAllowed(isResult)
    if (isResult) return resultOf(found)
    if (accepts(request, EVENTS)) return void this.#stream(found, response, listener)
    const { queue, job } = found
    return stateOf(queue.config.name, job)
  }

  /** Jobs of other callers are not found. */
  async #find(
    request: ClientRequest,
    name: string,
    id: string,
    listener: JobRequestListener,
  ): Promise<Found> {
    const queue = this.#queues.get(name)
    const { callers } = this.#versions.current
    // A client without a valid key learns nothing, not even the names of queues.
    const keyOf = queue?.vendor.protocol.callerKey ?? anyKey
    const key = keyOf(request.headers, requestTarget(request.url ?? '/').query)
    const caller = callers.find(key, request)
    if (caller === undefined) throw unauthorized()
    listener.onCaller(caller)
    const job =
      queue === undefined || !ID.test(id)
        ? undefined
        : await retryUnavailable(() => queue.jobs.job(id), this.#clock)
    if (queue === undefined || job === undefined) throw noJob()
    // A damaged record has no owner.
    if (job.data?.owner !== ownerOf(key, caller.user)) throw noJob()
    return { queue, job }
  }

  async #cancel({ queue, job }: Found): Promise<GatewayAnswer> {
    const { name } = queue.config
    const stopped = await retryUnavailable(() => queue.jobs.cancel(job.id), this.#clock)
    this.refresh(name, job.id)
    const now = (await retryUnavailable(() => queue.jobs.job(job.id), this.#clock)) ?? job
    if (!stopped && now.state !== 'cancelled') throw jobEnded(now)
    // A running job is aborted on its pod, and has ended when its worker reports that.
    return hasEnded(now) ? stateOf(name, now) : pending(202, describeJob(name, now))
  }

  #stream({ queue, job }: Found, response: ClientResponse, listener: JobRequestListener): void {
    // The client disconnected during the lookup, so 'close' is not emitted again; or an error was sent.
    if (response.destroyed || response.headersSent) return
    const { name } = queue.config
    const place = `${name} ${job.id}`
    const leave = this.#streams.enter(job.data.owner)
    let unwatch = () => {}
    response.writeHead(200, { 'content-type': EVENTS, 'cache-control': 'no-cache' })
    const stream = new JobStream(
      {
        queue: name,
        response,
        jobStatus: () => queue.jobs.jobStatus(job.id),
        read: () => queue.jobs.job(job.id),
        isDraining: () => this.#versions.current.hooks.draining,
        onShutdown: () => listener.onShutdown(),
        clock: this.#clock,
        onEnd: (ended) => {
          leave()
          unwatch()
          this.#streams.delete(place, ended)
        },
      },
      job,
    )
    // The stream of a job that has ended is closed already.
    if (response.writableEnded) return
    this.#streams.add(place, stream)
    unwatch = queue.jobs.watch(job.id, () => stream.refresh())
  }
}

function stateOf(name: string, job: KeptJob): GatewayAnswer {
  const body = describeJob(name, job)
  return hasEnded(job) ? jsonAnswer(200, body) : pending(200, body)
}

/** The vendor's answer. */
function resultOf({ queue, job }: Found): GatewayAnswer {
  const { name } = queue.config
  if (job.state === 'done' && job.result !== undefined) {
    const { status, headers, body } = job.result
    const own = { 'spillway-vendor': queue.vendor.name, 'spillway-attempts': String(job.attempt) }
    return { status, headers: { ...headers, ...own }, body: restoreBytes(body) }
  }
  if (job.state === 'cancelled') {
    throw new RequestError({ status: 410, code: 'CANCELLED', message: 'the job was cancelled' })
  }
  if (job.state === 'dead') throw failed(job)
  return pending(202, describeJob(name, job))
}

/** The store's text for a job whose deadline passed before it was started. */
const TOO_LATE = 'its deadline has passed'

function failed({ error = 'unknown error' }: KeptJob): RequestError {
  if (error === TOO_LATE || error.includes('deadline')) {
    return new RequestError({
      status: 504,
      code: 'DEADLINE_EXCEEDED',
      message: `the job: ${error}`,
    })
  }
  return new RequestError({
    status: 502,
    code: 'VENDOR_ERROR',
    message: `the job failed: ${error}`,
  })
}

function jsonAnswer(
  status: number,
  body: string,
  headers: Readonly<Record<string, string>> = {},
): GatewayAnswer {
  return { status, headers: { 'content-type': 'application/json', ...headers }, body }
}

function pending(
  status: number,
  body: string,
  headers: Readonly<Record<string, string>> = {},
): GatewayAnswer {
  return jsonAnswer(status, body, { 'retry-after': String(POLL_SECONDS), ...headers })
}

function accepts({ headers }: ClientRequest, type: string): boolean {
  return headers.accept?.toLowerCase().includes(type) === true
}

function anyKey(headers: ClientRequest['headers']): string | undefined {
  const name = KEY_HEADERS.find((each) => typeof headers[each] === 'string')
  return name && String(headers[name]).replace(/^bearer /i, '')
}

function decoded(name: string): string {
  try {
    return decodeURIComponent(name)
  } catch {
    return name
  }
}

const NO_JOB = 'there is no such job, or its result has expired; check its id'

function noJob(): RequestError {
  return new RequestError({ status: 404, code: 'NOT_FOUND', message: NO_JOB })
}

function unauthorized(): RequestError {
  const message = 'the API key is missing or unknown; send the key that created the job'
  return new RequestError({ status: 401, code: 'UNKNOWN_KEY', message })
}

function notAllowed(isResult: boolean): RequestError {
  const message = isResult ? 'a result can be read with GET' : 'a job has GET and DELETE'
  return new RequestError({ status: 405, code: 'METHOD_NOT_ALLOWED', message })
}

function jobEnded({ state }: KeptJob): RequestError {
  const message = `the job has ended already: ${state === 'dead' ? 'failed' : state}`
  return new RequestError({ status: 409, code: 'JOB_ENDED', message })
}

function keyReused(): RequestError {
  const message = 'another request was sent with this idempotency key; use a new key'
  return new RequestError({ status: 422, code: 'IDEMPOTENCY_KEY_REUSED', message })
}
