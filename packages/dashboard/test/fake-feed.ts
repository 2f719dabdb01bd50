/**
 * A simulated gateway for the page: for fleets that do not fit on one machine, unusual names, and
 * states that are hard to reproduce. Its messages have the real types.
 */
import { readFileSync } from 'node:fs'
import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { fileURLToPath } from 'node:url'
import type { Act } from '../src/wire/acts.js'
import type { Explanation } from '../src/wire/explain.js'
import type { Messages } from '../src/wire/messages.js'
import { FakeFleet, type FakeFleetOptions } from './fake-fleet.js'

const PAGE = new URL('../dist/page.html', import.meta.url)

export interface FakeFeed {
  readonly url: string
  readonly fleet: FakeFleet
  /** The actions that the page has requested. */
  readonly receivedActs: { act: Act; token: string | undefined }[]
  /** Sends one message to all readers. */
  send<Name extends keyof Messages>(name: Name, data: Messages[Name]): void
  /** Disconnects all readers and answers no request until `resume`. */
  cut(): void
  resume(): void
  /** Disconnects all readers and refuses requests without the token. */
  bar(problem: string): void
  close(): Promise<void>
}

export interface FakeFeedOptions extends FakeFleetOptions {
  /** Required for actions. */
  token?: string
  /** Sends the figures only once. */
  still?: boolean
  /** Requires the token for reading as well. */
  locked?: boolean
  /** Refuses reading with this reason, except with the token if there is one. */
  barred?: string
  /** How often reading dead letters fails. */
  unread?: number
  /** Sends nothing, so the page keeps waiting. */
  silent?: boolean
  /** The explanation of every request. */
  explanation?: Explanation
}

const TICK_MS = 1_000
const DECISIONS_MS = 100
const MOST_UNREAD = 2_000_000

export async function startFakeFeed(options: FakeFeedOptions = {}): Promise<FakeFeed> {
  const fleet = new FakeFleet(options)
  const readers = new Set<ServerResponse>()
  const receivedActs: FakeFeed['receivedActs'] = []
  let number = 0
  let isCut = false
  let { barred } = options
  let unread = options.unread ?? 0
  const say = <Name extends keyof Messages>(to: ServerResponse, name: Name, data: Messages[Name]) =>
    to.write(`id: fake.${++number}\nevent: ${name}\ndata: ${JSON.stringify(data)}\n\n`)
  const notes: Messages['act'][] = []
  const send: FakeFeed['send'] = (name, data) => {
    if (name === 'act') notes.push(data as Messages['act'])
    for (const reader of readers) say(reader, name, data)
  }

  const server = createServer((request, response) => {
    const path = new URL(request.url ?? '/', 'http://localhost').pathname
    if (isCut) return void response.destroy()
    if (path === '/') {
      response.setHeader('content-type', 'text/html')
      return void response.end(readFileSync(fileURLToPath(PAGE)))
    }
    const shown = request.headers.authorization?.replace('Bearer ', '')
    if (path === '/events' && options.locked === true && shown !== options.token) {
      return void response.writeHead(401).end('{"ok":false,"problem":"needs the token"}')
    }
    const isOperator = options.token !== undefined && shown === options.token
    if (path === '/events' && barred !== undefined && !isOperator) {
      return void response.writeHead(403).end(JSON.stringify({ problem: barred }))
    }
    if (path === '/events') {
      response.writeHead(200, { 'content-type': 'text/event-stream' })
      response.flushHeaders()
      response.on('close', () => readers.delete(response))
      if (options.silent === true) return
      readers.add(response)
      say(response, 'hello', fleet.hello(options.token === undefined ? 'open' : 'token'))
      for (const history of fleet.history()) say(response, 'history', history)
      say(response, 'fleet', fleet.fleet())
      say(response, 'guards', fleet.guards())
      const queues = fleet.queues()
      if (queues.jobQueues.length > 0) say(response, 'jobQueues', queues)
      for (const note of notes) say(response, 'act', note)
      return
    }
    if (path === '/explain') {
      response.setHeader('content-type', 'application/json')
      const requestId = new URL(request.url ?? '/', 'http://localhost').searchParams.get('request')
      const unknown = { requestId, decisions: [], podsQueried: 2, podsAnswered: 2 }
      return void response.end(JSON.stringify(options.explanation ?? unknown))
    }
    if (path === '/dead' && unread-- > 0) return void response.writeHead(503).end()
    if (path === '/dead') {
      response.setHeader('content-type', 'application/json')
      return void response.end(JSON.stringify(fleet.deadLetters()))
    }
    if (path === '/act') {
      let text = ''
      request.on('data', (chunk) => {
        text += chunk
      })
      request.on('end', () => {
        const act = JSON.parse(text) as Act
        receivedActs.push({ act, token: shown })
        const right = options.token === undefined || shown === options.token
        response.writeHead(right ? 200 : 401, { 'content-type': 'application/json' })
        response.end(
          JSON.stringify(
            right
              ? { ok: true, did: `did ${act.act}` }
              : { ok: false, problem: 'The token is wrong.' },
          ),
        )
        if (act.act === 'demo' && right) send('demo', fleet.switchDemo(act))
      })
      return
    }
    response.writeHead(404).end()
  })
  server.listen(0, '127.0.0.1')
  await new Promise((resolve) => server.once('listening', resolve))

  const ticking = setInterval(() => {
    if (options.still === true) return
    fleet.tick()
    send('fleet', fleet.fleet())
    send('guards', fleet.guards())
    const queues = fleet.queues()
    if (queues.jobQueues.length > 0) send('jobQueues', queues)
  }, TICK_MS)
  const deciding = setInterval(() => {
    const decisions = fleet.decisions(DECISIONS_MS)
    // A slow reader loses decisions, as with the real feed.
    for (const reader of readers) {
      if (reader.writableLength < MOST_UNREAD) say(reader, 'decisions', decisions)
    }
  }, DECISIONS_MS)

  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/`,
    fleet,
    receivedActs,
    send,
    cut() {
      isCut = true
      for (const reader of readers) reader.destroy()
    },
    resume() {
      isCut = false
    },
    bar(problem) {
      barred = problem
      for (const reader of readers) reader.destroy()
    },
    async close() {
      clearInterval(ticking)
      clearInterval(deciding)
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}
