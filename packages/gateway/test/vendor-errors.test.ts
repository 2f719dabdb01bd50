// test-group: sockets

/** A vendor's error reaches the client, independent of later attempts. */
import type { MockKnobs } from '@spillway/mock-vendor'
import { describe, expect, it } from 'vitest'
import { until } from '../../spillway/test/streams/stream-kit.js'
import { startGateway, startVendor, type Written } from './gateway-kit.js'
import { startHttpVendor, Talk } from './http1-kit.js'
import { anthropicPython, openaiPython } from './python-requests.js'

const LIMIT = { limits: [{ limit: 1, windowMs: '1m' }] }
const BREAKER = { breaker: { consecutiveFailures: 1, openMs: '1m' } }

/** The first target fails; the guard of the spare one has these options and is used up by one request. */
async function startWithSpare({
  spare: options,
  knobs = {},
  spareKnobs = {},
  ...written
}: Written & { spare: object; knobs?: MockKnobs; spareKnobs?: MockKnobs }) {
  const spare = await startVendor({ knobs: spareKnobs })
  const running = await startGateway(
    {
      vendors: { spare: { protocol: 'openai', url: spare.url, ...options } },
      routes: [
        { vendor: 'spare', models: ['spare'] },
        { vendor: 'openai', fallbacks: [{ vendor: 'spare', model: 'spare' }] },
      ],
      ...written,
    },
    { knobs: { status: 503, retryAfterMs: 7_000, ...knobs } },
  )
  return { ...running, spare: spare.vendor }
}

describe('a vendor error before a refusal of the fallback', () => {
  it.each<[string, object, MockKnobs]>([
    ['CIRCUIT_OPEN', BREAKER, { status: 500 }],
    ['VENDOR_LIMITED', LIMIT, {}],
  ])("a vendor's error is not replaced by %s of the fallback", async (code, options, knobs) => {
    const running = await startWithSpare({ spare: options, spareKnobs: knobs })
    const { chat, spare, failures } = running
    await (await chat({ model: 'spare' })).text()
    // Without the vendor's error the fallback itself would be refused.
    expect(await (await chat({ model: 'spare' })).text()).toContain(code)
    const answer = await chat()
    expect(answer.status).toBe(503)
    expect(await answer.json()).toMatchObject({
      error: { message: 'The engine is currently overloaded, please try again later.' },
    })
    expect(answer.headers.get('spillway-vendor')).toBe('openai')
    expect(answer.headers.get('spillway-decision')).toMatch(
      new RegExp(`^admitted;.*refused=${code}`),
    )
    expect(answer.headers.get('spillway-attempts')).toBe('1')
    expect(answer.headers.get('retry-after')).toBe('7')
    expect(spare.counts.arrived).toBe(1)
    expect(failures).toEqual([])
  })

  it("a vendor's error is not replaced by a full queue of the fallback", async () => {
    const { chat, spare } = await startWithSpare({
      spare: { concurrency: { limit: 1 }, shed: { maxQueue: 1 } },
      spareKnobs: { neverAnswer: true },
    })
    const leave = new AbortController()
    const busy = [1, 2].map(() =>
      chat({ model: 'spare' }, { signal: leave.signal }).catch(() => 'left'),
    )
    await until('the fallback is busy', () => spare.counts.arrived === 1)
    const answer = await chat()
    expect([answer.status, answer.headers.get('spillway-vendor')]).toEqual([503, 'openai'])
    leave.abort()
    await Promise.all(busy)
  })

  it("a vendor's error is not replaced by a fallback that cannot be reached", async () => {
    const { chat } = await startWithSpare({ spare: { url: 'http://127.0.0.1:1' } })
    const answer = await chat()
    expect(await answer.text()).toContain('overloaded')
    expect(answer.headers.get('spillway-attempts')).toBe('2')
  })

  it('the error of the last vendor that answered is sent', async () => {
    const { chat } = await startWithSpare({ spare: {}, spareKnobs: { status: 529 } })
    const answer = await chat()
    expect([answer.status, answer.headers.get('spillway-vendor')]).toEqual([529, 'spare'])
    expect(answer.headers.get('spillway-decision')).toMatch(/^fallback;.*step=1$/)
  })

  it('the answer of the fallback is sent if there is one', async () => {
    const { chat } = await startWithSpare({ spare: {} })
    const answer = await chat({ stream: true })
    expect([answer.status, answer.headers.get('spillway-vendor')]).toEqual([200, 'spare'])
    expect(await answer.text()).toContain('[DONE]')
  })

  it('a static answer still replaces the error of a vendor and the refusal of its fallback', async () => {
    const { chat } = await startWithSpare({
      spare: { url: 'http://127.0.0.1:1' },
      routes: [
        { vendor: 'openai', fallbacks: [{ vendor: 'spare' }, { static: { text: 'later' } }] },
      ],
    })
    const answer = await chat()
    expect(answer.status).toBe(200)
    expect(await answer.text()).toContain('later')
  })
})

describe('a vendor error before a refusal of a retry', () => {
  it("a vendor's error is not replaced by a limit that refuses the retry", async () => {
    const { chat, vendor } = await startGateway(
      { guard: { ...LIMIT, retry: { attempts: 3, budget: 1, baseMs: 1 } } },
      { knobs: { status: 503 } },
    )
    const answer = await chat()
    expect([answer.status, vendor.counts.arrived]).toEqual([503, 1])
    expect(await answer.text()).toContain('The engine is currently overloaded')
    expect(answer.headers.get('spillway-decision')).toMatch(/^admitted;.*refused=VENDOR_LIMITED/)
    expect(answer.headers.get('x-should-retry')).toBe('false')
    // The next request reaches no vendor, so the refusal is all there is.
    expect((await chat()).headers.get('spillway-decision')).toMatch(/^refused;/)
  })
})

describe('the body of a vendor error before another attempt', () => {
  const startFailing = async (body: string[], isWhole = true) => {
    const failing = await startHttpVendor(async (_, response) => {
      response.writeHead(503, { 'content-type': 'text/plain' })
      for (const part of body) {
        response.write(part)
        await new Promise((resolve) => setTimeout(resolve, 20))
      }
      if (isWhole) response.end()
      else response.destroy()
    })
    const vendors = {
      failing: { protocol: 'openai', url: failing.url },
      spare: { protocol: 'openai', url: 'http://127.0.0.1:1' },
    }
    const routes = [{ vendor: 'failing', fallbacks: [{ vendor: 'spare' }] }]
    return startGateway({ vendors, routes })
  }

  it('a vendor error whose body arrives in parts is sent entirely', async () => {
    const { chat } = await startFailing(['one ', 'two ', 'three'])
    const answer = await chat()
    expect([answer.status, await answer.text()]).toEqual([503, 'one two three'])
  })

  it.each<[string, string[], boolean]>([
    ['is longer than 64 kB', ['x'.repeat(70_000)], true],
    ['breaks off', ['half'], false],
  ])('the refusal is sent if the body of the vendor error %s', async (_, body, isWhole) => {
    const { chat } = await startFailing(body, isWhole)
    const answer = await chat()
    expect([answer.status, answer.headers.get('spillway-vendor')]).toEqual([502, 'spare'])
  })
})

describe('requests of the Python SDKs larger than keepBytes', () => {
  it.each([
    ['openai', openaiPython],
    ['anthropic', anthropicPython],
  ] as const)('a 503 reaches the %s package, whatever the fallback does', async (name, python) => {
    const spare = await startVendor({ knobs: { status: 500 } })
    const { url, vendor } = await startGateway(
      {
        body: { keepBytes: '64kb' },
        vendors: { spare: { protocol: name, url: spare.url, ...BREAKER } },
        routes: [{ vendor: name, fallbacks: [{ vendor: 'spare', model: 'spare' }] }],
      },
      { knobs: { status: 503 } },
    )
    const { head, body } = python('x'.repeat(1_000_000))
    const talk = new Talk(url)
    // The first request opens the circuit of the fallback, and gets its error. The second one is refused there.
    for (const answers of [1, 2]) {
      await talk.send(head)
      await talk.send(body)
      await talk.receives(answers)
    }
    expect(talk.statuses).toEqual([500, 503])
    expect(spare.vendor.calls.map(({ model }) => model)).toEqual(['spare'])
    expect(vendor.calls.map(({ headers }) => headers['x-stainless-lang'])).toEqual([
      'python',
      'python',
    ])
    expect(vendor.calls[0]?.promptTokens).toBe(250_000)
  })
})
