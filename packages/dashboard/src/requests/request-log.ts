/** The requests of this process: the last ones, and the refusals of the gateway itself among the decisions. */
import type { Clock } from 'spillway'
import type { DecisionLog } from 'spillway/internal'
import { requestIdOf, shown } from '../shown.js'
import type { Decision } from '../wire/decisions.js'
import type { RequestSummary } from '../wire/explain.js'
import { isOwnRefusal, type NotedRequest, summaryOf } from './noted-request.js'
import { RefusalSample } from './refusal-sample.js'
import { refusalWords } from './refusal-text.js'
import { RequestRing } from './request-ring.js'

/** Data of one process about a request. */
export interface KnownRequest {
  /** The request as its gateway saw it; absent if this process does not remember it. */
  request?: RequestSummary
  /** Decisions of guards on its calls, the oldest first. */
  decisions: Decision[]
}

export interface RequestLogOptions {
  readonly clock: Clock
  readonly log: DecisionLog
  readonly pod: string
  readonly views: (records: ReturnType<DecisionLog['since']>) => Decision[]
}

const NORMAL_PRIORITY = 2

export class RequestLog {
  readonly #options: RequestLogOptions
  readonly #ring = new RequestRing()
  readonly #sample = new RefusalSample()

  constructor(options: RequestLogOptions) {
    this.#options = options
  }

  note(request: NotedRequest): void {
    const { clock } = this.#options
    this.#ring.add(request, clock.wallMs())
    if (request.vendorAttempts.length === 0 && isOwnRefusal(request)) this.#list(request)
  }

  /** Whether neither the request nor a decision on it is known. */
  find(id: string): KnownRequest {
    const { log, views, pod } = this.#options
    const decisions = views(log.ofRequest(id))
    const found = this.#ring.find(id)
    if (found === undefined) return { decisions }
    return { request: summaryOf(found.request, shown(pod), found.endedAt), decisions }
  }

  #list({ id, status, code = '', user, tier, model, durationMs }: NotedRequest): void {
    const { clock, log } = this.#options
    const nowMs = clock.now()
    if (!this.#sample.mayList(code, nowMs)) return
    log.seen++
    log.note({
      arrivedMs: nowMs - durationMs,
      tookMs: durationMs,
      requestId: requestIdOf(id),
      guard: '',
      lane: model ?? '',
      user,
      tier,
      importance: NORMAL_PRIORITY,
      code,
      status,
      replaces: undefined,
      stage: 'request',
      scope: 'local',
      attempts: 0,
      retryAfterMs: undefined,
      why: refusalWords(code),
      details: { status },
      sharedAgeMs: undefined,
      path: [],
      traced: true,
    })
  }
}
