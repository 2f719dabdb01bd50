/**
 * Handles a request before its handler, in any framework: health, deadline, shedding, limits. With a memory store all
 * of it is synchronous.
 */
import type { IncomingHttpHeaders } from 'node:http'
import { type ErrorCode, SpillwayError } from '../core/errors.js'
import { type HopNames, hopNames, runHop } from '../core/hops.js'
import { validate } from '../core/options/checks.js'
import type { Priority } from '../core/options/priority.js'
import { isThenable } from '../core/thenable.js'
import { createDeadline, deadlineError, runWithDeadline } from '../core/time/deadline.js'
import { storeError } from '../guard/stages/refusal-errors.js'
import { userLimitedError } from '../guard/stages/user-limit.js'
import type { HealthLevel } from '../health/health.js'
import { ShedWait } from '../local/shed-wait.js'
import type { UserCharges, UserReply } from '../shared/user-limits/charges.js'
import { createUserCharges } from '../shared/user-limits/charges.js'
import type { UserLevelCharge, UserRequest } from '../shared/user-limits/levels.js'
import { memoryStore } from '../store/memory/memory-store.js'
import type { MaybePromise } from '../store/port.js'
import { type ClientAddress, createClientAddress } from './client-address.js'
import { exhaustedItem, policyItem, standingItem } from './rate-limit-fields.js'
import {
  type CheckedServer,
  type Identity,
  readingServer,
  type ServerOptions,
} from './server-options.js'

/** The part of a request that every framework on node:http has. */
export interface Incoming {
  readonly headers: IncomingHttpHeaders
  readonly socket: { readonly remoteAddress?: string | undefined }
}

/** An incoming request. Can be passed to a guard's `run` as it is. */
export class ServerCall implements Identity {
  /** Its user, if known. */
  readonly user: string | undefined
  /** Tier of its user, if known. */
  readonly tier: string | undefined
  /** Its priority, if known. */
  readonly priority: Priority | undefined
  /** Its endpoint. */
  readonly endpoint: string | undefined
  readonly #incoming: Incoming
  readonly #address: ClientAddress
  #ip: string | undefined

  constructor(
    incoming: Incoming,
    address: ClientAddress,
    identity: Identity | undefined,
    endpoint: string,
  ) {
    this.#incoming = incoming
    this.#address = address
    this.user = identity?.user
    this.tier = identity?.tier
    this.priority = identity?.priority
    this.endpoint = identity?.endpoint ?? endpoint
  }

  /** The client's address; for IPv6 the network that counts as one client. */
  get ip(): string {
    const { headers, socket } = this.#incoming
    this.#ip ??= this.#address(socket.remoteAddress, headers['x-forwarded-for'])
    return this.#ip
  }
}

/** The decision on a request. */
export interface Verdict {
  readonly refusal: SpillwayError | undefined
  /** Header value with the limits; undefined if there are none for this client. */
  readonly policy: string | undefined
  readonly standing: string | undefined
  /** Called at the end of the request, if needed. */
  readonly visit: { end(): void } | undefined
}

/** Counts of admitted and refused requests of a server. */
export interface ServerSnapshot {
  /** Name of the server. */
  name: string
  /** Requests that were admitted. */
  admitted: number
  /** Of these, requests admitted although the store did not answer. */
  unchecked: number
  /** Refused requests by code. */
  refused: { code: ErrorCode; count: number }[]
}

const FREE: Verdict = {
  refusal: undefined,
  policy: undefined,
  standing: undefined,
  visit: undefined,
}

export class ServerGate<Request> {
  readonly name: string
  readonly identify: ((request: Request) => Identity | undefined) | undefined
  readonly #options: CheckedServer<Request>
  readonly #names: HopNames
  readonly #address: ClientAddress
  readonly #charges: UserCharges | undefined
  readonly #shedWait: ShedWait
  #lastLevels: readonly UserLevelCharge[] = []
  #lastPolicy = ''
  readonly #refused = new Map<ErrorCode, number>()
  #admitted = 0
  #unchecked = 0

  constructor(options: ServerOptions<Request>) {
    this.#options = validate('server', options, readingServer<Request>())
    const { name, limits, trustedProxies, ipv6Bits, deadline, identify } = this.#options
    this.name = name
    this.identify = identify
    this.#names = hopNames(deadline?.headers)
    this.#address = createClientAddress(trustedProxies, ipv6Bits)
    this.#shedWait = new ShedWait(this.#options.random)
    if (limits !== undefined) {
      const { clock, random, expectedPods, store = memoryStore({ clock }) } = this.#options
      const charges = { store, name, levels: limits, expectedPods, clock, random }
      this.#charges = createUserCharges(charges)
    }
  }

  /** Determines the caller of a request. Exceptions of `identify` are passed on. */
  receive(incoming: Incoming, request: Request, endpoint: string): ServerCall {
    return new ServerCall(incoming, this.#address, this.identify?.(request), endpoint)
  }

  /** Whether the request may continue. Synchronous unless a remote store is needed. */
  decide(call: ServerCall, headers: IncomingHttpHeaders): MaybePromise<Verdict> {
    const left = headers[this.#names.deadline]
    if (left !== undefined && Number(left) <= 0) {
      return this.#refuse(deadlineError('shed', this.name))
    }
    const { shed } = this.#options
    let visit: Verdict['visit']
    if (shed !== undefined) {
      const admitted = shed.admit?.(call) ?? shed.enter(call) ?? this.#shedError()
      if (admitted instanceof SpillwayError) return this.#refuse(admitted)
      visit = admitted
    }
    const request = this.#charges?.requestFor(call, 1)
    if (request === undefined) return this.#admit(visit)
    let reply: MaybePromise<UserReply>
    try {
      reply = (this.#charges as UserCharges).charge(request)
    } catch (error) {
      return this.#noAnswer(error, visit)
    }
    if (!isThenable(reply)) return this.#judge(request, reply, visit)
    return reply.then(
      (each) => this.#judge(request, each, visit),
      (error) => this.#noAnswer(error, visit),
    )
  }

  /** Runs the handler with the time its caller has left, and our own limit on it. */
  run<T>(headers: IncomingHttpHeaders, next: () => T, onRetried: () => void): T {
    const { deadline, clock } = this.#options
    const { timeoutMs } = deadline ?? {}
    if (timeoutMs === undefined) return this.#runHop(headers, next, onRetried)
    return runWithDeadline(createDeadline(timeoutMs, clock), () =>
      this.#runHop(headers, next, onRetried),
    )
  }

  /**
   * Whether the caller or our options limit time or attempts, so that the handler needs an async
   * context.
   */
  needsContext(headers: IncomingHttpHeaders): boolean {
    return (
      headers[this.#names.deadline] !== undefined ||
      headers[this.#names.attempt] !== undefined ||
      this.#options.deadline?.timeoutMs !== undefined
    )
  }

  /** The response header which says that this service has retried. */
  get retriedHeader(): string {
    return this.#names.retried
  }

  /** The health report at this address, if any. */
  healthAt(method: string | undefined, url: string): HealthLevel | undefined {
    const { health, healthPath, healthLevels } = this.#options
    if (health === undefined || !url.startsWith(healthPath)) return undefined
    if (method !== 'GET' && method !== 'HEAD') return undefined
    const end = url.indexOf('?')
    const level = url.slice(healthPath.length + 1, end === -1 ? undefined : end) as HealthLevel
    return healthLevels.includes(level) && url[healthPath.length] === '/' ? level : undefined
  }

  async health(level: HealthLevel): Promise<{ status: number; body: string }> {
    const report = await this.#options.health?.[level]()
    const status = report?.status === 'unhealthy' ? 503 : 200
    return { status, body: JSON.stringify(report) }
  }

  snapshot(): ServerSnapshot {
    const refused = Array.from(this.#refused, ([code, count]) => ({ code, count }))
    return { name: this.name, admitted: this.#admitted, unchecked: this.#unchecked, refused }
  }

  #runHop<T>(headers: IncomingHttpHeaders, next: () => T, onRetried: () => void): T {
    const { clock } = this.#options
    return runHop(headers, this.#names, next, { clock, onRetried })
  }

  #judge(request: UserRequest, reply: UserReply, visit: Verdict['visit']): Verdict {
    const alone = reply.alone !== undefined
    if (alone && reply.refusedBy === 0) this.#unchecked++
    // The request was not counted, so there is nothing to report.
    if (reply.tightest === 0) return this.#admit(visit)
    const policy = this.#policyOf(request.levels)
    const charge = request.levels[reply.tightest - 1] as UserLevelCharge
    if (reply.refusedBy === 0) {
      this.#admitted++
      return { refusal: undefined, policy, standing: standingItem(charge, reply), visit }
    }
    visit?.end()
    const refusal = userLimitedError(this.name, request, reply, alone)
    const standing = exhaustedItem(charge, reply)
    return { ...this.#refuse(refusal), policy, standing }
  }

  /** Nearly always the same as the last time. */
  #policyOf(levels: readonly UserLevelCharge[]): string {
    if (!isAlike(levels, this.#lastLevels)) {
      this.#lastLevels = levels
      this.#lastPolicy = levels.map(policyItem).join(', ')
    }
    return this.#lastPolicy
  }

  #noAnswer(error: unknown, visit: Verdict['visit']): Verdict {
    visit?.end()
    return this.#refuse(
      error instanceof SpillwayError ? error : storeError(this.name, error, 'user-limit'),
    )
  }

  #admit(visit: Verdict['visit']): Verdict {
    this.#admitted++
    return visit === undefined ? FREE : { ...FREE, visit }
  }

  /** The application's own load shedder gives no reason. */
  #shedError(): SpillwayError {
    return new SpillwayError({
      code: 'SHED',
      stage: 'shed',
      scope: 'local',
      retryAfterMs: this.#shedWait.nextMs(this.#options.clock.now()),
      details: { name: this.name },
      explain: ({ name }) => `${name}: refused by the load shedder (option shed)`,
    })
  }

  #refuse(refusal: SpillwayError): Verdict {
    this.#refused.set(refusal.code, (this.#refused.get(refusal.code) ?? 0) + 1)
    return { ...FREE, refusal }
  }
}

/** Compares the fields that clients see. */
function isAlike(levels: readonly UserLevelCharge[], others: readonly UserLevelCharge[]): boolean {
  if (levels.length !== others.length) return false
  for (let index = 0; index < levels.length; index++) {
    const one = levels[index] as UserLevelCharge
    const other = others[index] as UserLevelCharge
    if (one !== other && (one.name !== other.name || one.limit !== other.limit)) return false
  }
  return true
}
