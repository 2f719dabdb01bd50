/**
 * The live dashboard of a Spillway, for any server on node:http: the page, its feed, and operator
 * actions. It shows this pod in full and the fleet as stored.
 */
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Spillway } from 'spillway'
import {
  type AccessDenial,
  createOperatorAccess,
  type OperatorAccess,
  type OperatorAccessOptions,
} from 'spillway/http'
import { accessFields, checkToken, internalsOf, RENAMED_ACCESS } from 'spillway/internal'
import {
  func,
  having,
  OptionsError,
  object,
  optional,
  text,
  together,
  validate,
} from 'spillway/options'
import { actsOf, type DashboardDemo, readAct, reportDenied, statusOf, type Who } from './acts.js'
import { Feed } from './feed/feed.js'
import type { DashboardPeers, DecisionPage } from './feed/peer-decisions.js'
import { deadLetters } from './feed/queue-tick.js'
import { FEED_HEADERS, FeedReader } from './feed/reader.js'
import { loadPage } from './page.js'
import { readJson } from './request-json.js'
import type { NotedRequest } from './requests/noted-request.js'
import type { KnownRequest } from './requests/request-log.js'
import { namesShownAs, requestIdOf, shown } from './shown.js'
import type { ActAnswer, ActNote } from './wire/acts.js'
import type { Explanation } from './wire/explain.js'

/** Options of a dashboard: its content, its address, and permissions for reading and acting. */
export interface DashboardOptions extends OperatorAccessOptions {
  /** The guards and job queues of this pod. The page shows the whole fleet. */
  spillway: Spillway
  /**
   * Path of the dashboard, such as `/dashboard`. Default: `/`, or where a framework has mounted it.
   */
  path?: string
  /**
   * Restricts who may read, among those that `readAccess` allows. Return true, or the reason for a 403 in a
   * word or two; false is a 403, too. Default: all of them may.
   */
  mayRead?: (request: IncomingMessage) => boolean | string
  /** Two switches on the page, for demos. Default: none. */
  demo?: DashboardDemo
  /**
   * The other processes of this pod, if several serve one port. The page shows their decisions as well. Default:
   * none.
   */
  peers?: DashboardPeers
}

/** A handler for HTTP requests that serves the page. */
export interface Dashboard {
  /**
   * For `http.createServer`, and as middleware: other requests are passed to `next`, or answered
   * with 404.
   */
  (request: IncomingMessage, response: ServerResponse, next?: () => void): void
  /** Current readers of the feed. */
  readonly readers: number
  /** Decisions of this process after a cursor, for another process whose dashboard has this one as a peer. */
  decisions(cursor?: string): DecisionPage
  /**
   * Notes an answered request, so that it can be found by its id. Refusals of the server itself are listed among the
   * decisions.
   */
  noteRequest(request: NotedRequest): void
  /** Data of this process about a request, for another process whose dashboard has this one as a peer. */
  find(requestId: string): KnownRequest
  /** Explains what happened to a request, on any pod. */
  explain(requestId: string): Promise<Explanation>
  /** Ends every feed. */
  close(): void
}

const MOST_READERS = 100

const readOptions = together(
  object(
    {
      spillway: having<Spillway>('a spillway', 'guard', 'snapshot', 'fleet'),
      ...accessFields,
      path: optional(text(), '/'),
      mayRead: optional(func<(request: IncomingMessage) => boolean | string>()),
      demo: optional(having<DashboardDemo>('a demo', 'state', 'set')),
      peers: optional(having<DashboardPeers>('peers', 'decisions')),
    },
    { ...RENAMED_ACCESS, mayLook: 'mayRead' },
  ),
  checkToken,
)

/**
 * Creates a live page of the whole fleet: breakers, limits, queues, pods and the reasons of refusals.
 *
 * @example
 * const dashboard = createDashboard({ spillway, token: process.env.ADMIN_TOKEN })
 * http.createServer(dashboard).listen(8081, '127.0.0.1')
 */
export function createDashboard(options: DashboardOptions): Dashboard {
  const server = new DashboardServer(validate('dashboard', options, readOptions))
  const handle = (request: IncomingMessage, response: ServerResponse, next?: () => void) =>
    server.handle(request, response, next)
  const close = () => server.close()
  const { feed } = server
  const own = {
    close,
    decisions: (cursor?: string) => feed.decisions(cursor),
    noteRequest: (request: NotedRequest) => feed.noteRequest(request),
    find: (requestId: string) => feed.find(requestId),
    explain: (requestId: string) => feed.explain(requestId),
  }
  return Object.defineProperties(Object.assign(handle, own), {
    readers: { get: () => server.readers },
  }) as Dashboard
}

class DashboardServer {
  readonly #options: ReturnType<typeof readOptions>
  readonly #base: string
  readonly #access: OperatorAccess
  readonly feed: Feed
  readonly #around: Parameters<typeof readAct>[1]

  constructor(options: ReturnType<typeof readOptions>) {
    const { spillway, token, readAccess, hosts, exposed, path, demo, peers } = options
    const inside = internalsOf(spillway)
    if (inside === undefined) {
      const message = 'must be the object that createSpillway() returned, not a wrapper around it'
      throw new OptionsError([{ path: 'dashboard.spillway', message }])
    }
    this.#options = options
    this.#base = path.replace(/\/+$/, '')
    this.#access = createOperatorAccess({
      ...(token !== undefined && { token }),
      ...{ readAccess, hosts, exposed },
    })
    this.#around = { inside, demo }
    this.feed = new Feed({
      inside,
      may: actsOf(this.#around),
      demo: demo && (() => demo.state()),
      peers,
    })
  }

  get readers(): number {
    return this.feed.readers
  }

  handle(request: IncomingMessage, response: ServerResponse, next: (() => void) | undefined): void {
    const { pathname, params } = targetOf(request)
    const inside = pathname === this.#base || pathname.startsWith(`${this.#base}/`)
    const place = inside ? pathname.slice(this.#base.length).replace(/^\//, '') : undefined
    const { method = 'GET' } = request
    const reads = method === 'GET' || method === 'HEAD'
    if (place === 'act' && method === 'POST') return settle(this.#act(request, response), response)
    if (place === undefined || !PLACES.has(place)) {
      if (next !== undefined) return next()
      return answer(response, 404, { ok: false, problem: 'not found' })
    }
    if (!reads || place === 'act') {
      response.setHeader('allow', place === 'act' ? 'POST' : 'GET, HEAD')
      return answer(response, 405, { ok: false, problem: 'this method is not allowed here' })
    }
    // The page contains no data; it prompts for the token if it needs one.
    if (place === '') return sendPage(request, response)
    const denied = this.#denied(request)
    if (denied !== undefined) return deny(response, denied)
    if (place === 'events') return settle(this.#attach(request, response), response)
    const answering = place === 'explain' ? this.#explain(params, response) : undefined
    settle(answering ?? this.#dead(params, response), response)
  }

  close(): void {
    this.feed.close()
  }

  #denied(request: IncomingMessage): Pick<AccessDenial, 'status' | 'problem'> | undefined {
    const denied = this.#access.read(request)
    if (denied !== undefined) return denied
    const may = this.#mayRead(request)
    if (may === true) return undefined
    return {
      status: 403,
      problem: typeof may === 'string' && may !== '' ? shown(may) : 'access denied',
    }
  }

  /** If `mayRead` throws, reading is denied. */
  #mayRead(request: IncomingMessage): boolean | string {
    const { mayRead } = this.#options
    try {
      return mayRead === undefined || mayRead(request)
    } catch {
      return false
    }
  }

  async #attach(request: IncomingMessage, response: ServerResponse): Promise<void> {
    if (request.method === 'HEAD') {
      response.writeHead(200, FEED_HEADERS)
      return void response.end()
    }
    // No response to a client that has disconnected.
    if (response.destroyed || request.socket.destroyed) return
    if (this.feed.closed) {
      return answer(response, 503, { ok: false, problem: 'the dashboard is closed' })
    }
    if (this.feed.readers >= MOST_READERS) {
      return answer(response, 503, {
        ok: false,
        problem: `the dashboard has ${MOST_READERS} readers already`,
      })
    }
    const acts = this.#access.acts(request)
    const reader: FeedReader = new FeedReader(response, acts, () => this.feed.detach(reader))
    request.socket.setNoDelay(true)
    const lastId = request.headers['last-event-id']
    await this.feed.attach(reader, typeof lastId === 'string' ? lastId : undefined)
  }

  async #explain(params: URLSearchParams, response: ServerResponse): Promise<void> {
    const requestId = requestIdOf(params.get('request') ?? '')
    if (requestId === undefined) {
      return answer(response, 400, { ok: false, problem: 'request: must be a request id' })
    }
    answer(response, 200, await this.feed.explain(requestId))
  }

  async #dead(params: URLSearchParams, response: ServerResponse): Promise<void> {
    const name = params.get('queue') ?? ''
    const queues = this.#around.inside.queues()
    const names = namesShownAs(
      name,
      queues.map((each) => each.name),
    )
    if (names.length > 1) {
      return answer(response, 409, {
        ok: false,
        problem: 'several job queues have this shortened name',
      })
    }
    const queue = queues.find((each) => each.name === names[0])
    if (queue === undefined)
      return answer(response, 404, { ok: false, problem: 'no such job queue' })
    try {
      const [from, count] = [wholeOf(params.get('from'), 0), wholeOf(params.get('count'), 50)]
      answer(response, 200, await deadLetters(queue, from, count))
    } catch {
      answer(response, 503, { ok: false, problem: 'the store did not answer' })
    }
  }

  async #act(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const who = { by: 'dashboard', from: request.socket.remoteAddress ?? 'unknown' }
    const denied = this.#denied(request) ?? this.#access.act(request)
    if (denied !== undefined) {
      reportDenied(who, denied)
      return deny(response, denied)
    }
    const body = await readJson(request)
    if ('problem' in body) {
      reportDenied(who, body)
      return answer(response, body.status, { ok: false, problem: body.problem })
    }
    let note: Pick<ActNote, 'act' | 'on'> | undefined
    try {
      const act = readAct(body.value, this.#around)
      note = { act: act.name, on: shown(act.on) }
      const did = await act.perform(who)
      this.#publishAct(note, { ok: true, did }, who)
      if (act.name === 'demo' && this.#around.demo !== undefined) {
        this.feed.demoChanged(this.#around.demo.state())
      }
      answer(response, 200, { ok: true, did: shown(did) })
    } catch (error) {
      const { status, problem } = statusOf(error)
      // Valid actions have emitted an event already.
      if (note === undefined) reportDenied(who, { problem: shown(problem) })
      else this.#publishAct(note, { ok: false, problem }, who)
      answer(response, status, { ok: false, problem: shown(problem) })
    }
  }

  #publishAct(note: Pick<ActNote, 'act' | 'on'>, end: ActAnswer, who: Who): void {
    const { inside } = this.#around
    this.feed.acted({
      at: inside.clock.wallMs(),
      pod: shown(inside.membership.pod),
      ...note,
      did: shown(end.ok ? end.did : end.problem),
      ok: end.ok,
      by: `${who.by}, ${who.from}`,
    })
  }
}

const PLACES: ReadonlySet<string> = new Set(['', 'events', 'act', 'dead', 'explain'])

/**
 * Parsed by hand: for some paths (`//`, `//[`) `URL` takes a part for a host name, or throws. A
 * proxy may send the host as well.
 */
function targetOf({ url = '/' }: IncomingMessage): { pathname: string; params: URLSearchParams } {
  const target = url.replace(/^https?:\/\/[^/?]*/i, '')
  const end = target.indexOf('?')
  const pathname = end === -1 ? target : target.slice(0, end)
  return {
    pathname: pathname === '' ? '/' : pathname,
    params: new URLSearchParams(end === -1 ? '' : target.slice(end)),
  }
}

/** Runs in the background. An error ends this response and nothing else. */
function settle(answering: Promise<void>, response: ServerResponse): void {
  answering.catch(() => response.destroy())
}

function sendPage(request: IncomingMessage, response: ServerResponse): void {
  const { plain, packed, headers } = loadPage()
  const packs = /\bgzip\b/.test(String(request.headers['accept-encoding'] ?? ''))
  const body = packs ? packed : plain
  response.writeHead(200, {
    ...headers,
    'content-length': body.length,
    ...(packs && { 'content-encoding': 'gzip' }),
  })
  response.end(request.method === 'HEAD' ? undefined : body)
}

function deny(
  response: ServerResponse,
  { status, problem }: Pick<AccessDenial, 'status' | 'problem'>,
): void {
  if (status === 401) response.setHeader('www-authenticate', 'Bearer realm="spillway"')
  answer(response, status, { ok: false, problem })
}

function answer(response: ServerResponse, status: number, body: object): void {
  const json = JSON.stringify(body)
  response.writeHead(status, {
    'content-type': 'application/json',
    'content-length': Buffer.byteLength(json),
    'cache-control': 'no-store',
    'x-content-type-options': 'nosniff',
  })
  response.end(json)
}

function wholeOf(text: string | null, usual: number): number {
  return text !== null && /^\d{1,9}$/.test(text) ? Number(text) : usual
}
