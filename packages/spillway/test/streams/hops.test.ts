// test-group: sockets

/** Client → A → B → C over real HTTP: retries do not multiply, and time left travels along. */
import { createServer, type IncomingHttpHeaders, type RequestListener } from 'node:http'
import type { AddressInfo } from 'node:net'
import { createSpillway, type GuardOptions, SpillwayError } from 'spillway'
import { describe, expect, it, onTestFinished } from 'vitest'
import type { HopHeaders } from '../../src/core/hops.js'
import { createHops } from '../../src/http/hops.js'
import { errorOf, pauseMs, startGuard } from './stream-kit.js'

async function serve(listener: RequestListener): Promise<string> {
  const server = createServer(listener)
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => {
    server.closeAllConnections()
    server.close()
  })
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/`
}

const RETRY = { attempts: 3, budget: 1, baseMs: 1, maxMs: 2 }

function guardFor(hops: boolean | HopHeaders, retry: GuardOptions['retry'] = RETRY) {
  // Each tier represents a separate process.
  const spillway = createSpillway()
  onTestFinished(() => spillway.close({ graceMs: 0 }))
  return spillway.guard('next', { retry: { ...RETRY, ...retry }, fetch: { hops } })
}

/** A tier that passes on the next one's answer. */
function tier(next: string, hops: boolean | HopHeaders, retry?: GuardOptions['retry']) {
  const guard = guardFor(hops, retry)
  const reading = createHops(typeof hops === 'object' ? { headers: hops } : {})
  const seen: IncomingHttpHeaders[] = []
  const pass: RequestListener = async (_, response) => {
    try {
      const answer = await guard.fetch(next)
      response.writeHead(answer.status).end(await answer.text())
    } catch (error) {
      const status = error instanceof SpillwayError ? error.status : 502
      response.writeHead(status).end(String(error))
    }
  }
  const url = serve((request, response) => {
    seen.push(request.headers)
    if (hops === false) return void pass(request, response)
    return void reading.handle(request, response, () => pass(request, response))
  })
  return { url, seen, guard }
}

interface ChainOptions {
  hops: boolean | HopHeaders
  /** The way in which C is down. */
  down: 'answers 503' | 'cuts'
  retries?: GuardOptions['retry'][]
}

async function chain({ hops, down, retries = [] }: ChainOptions) {
  let reached = 0
  let well = true
  const c = await serve((request, response) => {
    if (well) return void response.end('well')
    reached++
    if (down === 'cuts') return void request.socket.destroy()
    return void response.writeHead(503).end('down')
  })
  const b = tier(c, hops, retries[2])
  const a = tier(await b.url, hops, retries[1])
  const client = guardFor(hops, retries[0])
  // Enough traffic that the retry budget is not the limit.
  for (let each = 0; each < 30; each++) await (await client.fetch(await a.url)).text()
  a.seen.length = 0
  b.seen.length = 0
  well = false
  const answer = await client.fetch(await a.url)
  await answer.text()
  return { reached, status: answer.status, atA: a.seen.length, atB: b.seen.length, a, b, client }
}

describe('three tiers with three attempts each and the last one down', () => {
  it.each(['answers 503', 'cuts'] as const)(
    'when C %s, at most 4 calls reach it with attempt headers, and 27 without',
    async (down) => {
      const withoutHops = await chain({ hops: false, down })
      expect(withoutHops.reached).toBe(27)
      const withHops = await chain({ hops: true, down })
      expect(withHops.reached).toBeGreaterThanOrEqual(1)
      expect(withHops.reached).toBeLessThanOrEqual(4)
      expect([withHops.atA, withHops.atB]).toEqual([1, 1])
      expect(withHops.status).toBe(withoutHops.status)
    },
  )

  it("with where: 'edge' only the client retries", async () => {
    const edge = { ...RETRY, where: 'edge' as const }
    const { reached, atA, atB } = await chain({
      hops: true,
      down: 'answers 503',
      retries: [edge, edge, edge],
    })
    expect([atA, atB, reached]).toEqual([3, 3, 3])
  })

  it('the edge is the tier that receives a request without hop headers', async () => {
    const edge = { ...RETRY, where: 'edge' as const }
    let reached = 0
    const c = await serve((_, response) => {
      reached++
      response.writeHead(503).end()
    })
    const b = tier(c, true, edge)
    const a = tier(await b.url, true, edge)
    // A browser without Spillway.
    expect((await fetch(await a.url)).status).toBe(503)
    expect([a.seen.length, b.seen.length, reached]).toEqual([1, 3, 3])
  })

  it('hop headers can be renamed', async () => {
    const names = { deadline: 'X-Time-Left', attempt: 'X-Attempt', retried: 'X-Tried' }
    const { reached, a, b } = await chain({ hops: names, down: 'answers 503' })
    expect(reached).toBeLessThanOrEqual(4)
    expect(a.seen[0]?.['x-attempt']).toBe('1')
    expect(b.seen[0]?.['x-attempt']).toBe('1')
    expect(Object.keys({ ...a.seen[0], ...b.seen[0] }).join()).not.toContain('spillway')
  })

  it('a request that is a retry is not retried further on', async () => {
    let reached = 0
    const c = await serve((_, response) => {
      reached++
      response.writeHead(503).end()
    })
    const b = tier(c, true)
    await (await fetch(await b.url, { headers: { 'spillway-attempt': '2' } })).text()
    expect(reached).toBe(1)
    await (await fetch(await b.url, { headers: { 'spillway-attempt': '1' } })).text()
    expect(reached).toBe(4)
  })

  it('an answer that was retried says so, so its caller need not retry', async () => {
    const c = await serve((_, response) => void response.writeHead(503).end())
    const b = tier(c, true)
    const answer = await fetch(await b.url)
    expect(answer.headers.get('spillway-retried')).toBe('1')
  })
})

describe('remaining time across tiers', () => {
  /** A → B → C, where the work of C takes two seconds. */
  async function timed() {
    const begun: number[] = []
    const left: number[] = []
    const work = startGuard()
    const hops = createHops()
    const c = await serve((request, response) => {
      left.push(Number(request.headers['spillway-deadline-ms']))
      void hops.handle(request, response, async () => {
        try {
          await work.run(
            async ({ signal }) => {
              begun.push(performance.now())
              await new Promise<void>((resolve) => {
                const timer = setTimeout(resolve, 2_000)
                signal.addEventListener('abort', () => {
                  clearTimeout(timer)
                  resolve()
                })
              })
            },
            { needsMs: 2_000 },
          )
          response.end('done')
        } catch (error) {
          response.writeHead(error instanceof SpillwayError ? error.status : 500).end(String(error))
        }
      })
    })
    const b = tier(c, true, { ...RETRY, attempts: 1 })
    const a = tier(await b.url, true, { ...RETRY, attempts: 1 })
    return { a: await a.url, begun, left, refused: () => work.snapshot().refused }
  }

  it('with 500 ms at A, C never starts work that takes 2 seconds', async () => {
    const { a, begun, left, refused } = await timed()
    const guard = guardFor(true)
    const call = guard.fetchFor({ timeoutMs: 500 })(a)
    const answer = await call.then(
      (response) => response.status,
      (error) => error.code,
    )
    expect([504, 'DEADLINE_EXCEEDED']).toContain(answer)
    await pauseMs(100)
    expect(begun).toEqual([])
    // Each tier passes on the remaining time, not the original one.
    for (const ms of left) expect(ms).toBeLessThanOrEqual(500)
    if (left.length > 0) {
      expect(refused()).toEqual([{ stage: 'queue', code: 'DEADLINE_EXCEEDED', count: left.length }])
    }
  })

  it('with enough time C does its work', async () => {
    const { a, begun, left } = await timed()
    const guard = guardFor(true)
    const answer = await guard.fetchFor({ timeoutMs: 15_000 })(a)
    expect(await answer.text()).toBe('done')
    expect(begun.length).toBe(1)
    expect(left[0]).toBeLessThanOrEqual(15_000)
    expect(left[0]).toBeGreaterThan(2_000)
  })

  it('needsMs has no effect without a deadline', async () => {
    const guard = startGuard()
    expect(await guard.run(() => 'done', { needsMs: 2_000 })).toBe('done')
    expect(
      await errorOf(guard.run(() => 'done', { needsMs: 2_000, timeoutMs: 1_000 })),
    ).toMatchObject({
      code: 'DEADLINE_EXCEEDED',
    })
  })
})
