// test-group: io

/** Clients that speak HTTP/1.1 with exact bytes: pipelining, refusals, disconnects, draining. */
import { describe, expect, it } from 'vitest'
import { pauseMs, until } from '../../spillway/test/streams/stream-kit.js'
import { expectIdle, startGateway } from './gateway-kit.js'
import { startGatewayProcess } from './gateway-process.js'
import { get, type HttpVendor, post, startEchoGateway, startHttpVendor, Talk } from './http1-kit.js'
import { dice } from './security/mutate.js'
import { exchangeRaw } from './security/raw.js'

const CALLERS = [{ key: 'env:ADA', user: 'ada' }]

describe('a request over HTTP/1.1', () => {
  it('a request is separated from the requests behind it, in one piece or several', async () => {
    const vendor = await startHttpVendor()
    const { url } = await startEchoGateway(vendor)
    const inside = get('/echo/smuggled')
    const talk = new Talk(url)
    for (const part of [post('/echo/1', inside), get('/echo/2')]) {
      const half = Math.floor(part.length / 2)
      await talk.send(part.slice(0, half))
      await pauseMs(20)
      await talk.send(part.slice(half))
      await talk.receives(talk.statuses.length + 1)
    }
    await talk.send(post('/echo/3', inside) + get('/echo/4') + post('/echo/5', 'x'))
    await talk.receives(5, '/echo/5')
    expect(talk.statuses).toEqual([200, 200, 200, 200, 200])
    expect(vendor.requests.map((one) => one.url).sort()).toEqual(
      [1, 2, 3, 4, 5].map((number) => `/echo/${number}`),
    )
    expect(vendor.requests[0]?.body).toBe(inside)
    expect(talk.text.match(/(?<=you asked for )\/echo\/\d/g)).toEqual(
      [1, 2, 3, 4, 5].map((number) => `/echo/${number}`),
    )
  })

  it('a CONNECT behind a request that is not answered yet ends the connection without an answer', async () => {
    let letGo = () => {}
    const held = new Promise<void>((resolve) => {
      letGo = resolve
    })
    const vendor = await startHttpVendor(async (_, response) => {
      await held
      response.end('late')
    })
    const { url } = await startEchoGateway(vendor)
    const { text, closed } = await exchangeRaw(
      url,
      `${get('/echo/1')}CONNECT a:443 HTTP/1.1\r\nHost: a:443\r\n\r\n`,
    )
    letGo()
    expect({ text, closed }).toEqual({ text: '', closed: true })
  })

  it('pipelined requests are answered in their order', async () => {
    let letGo = () => {}
    const held = new Promise<void>((resolve) => {
      letGo = resolve
    })
    const vendor = await startHttpVendor(async ({ url, body }, response) => {
      if (url === '/echo/1') await held
      response.end(`[${url} ${body.length}]`)
    })
    const { url } = await startEchoGateway(vendor)
    const talk = new Talk(url)
    await talk.send(get('/echo/1'))
    await until('it is asked', () => vendor.requests.length === 1)
    // This is more than the gateway should buffer.
    for (const number of [2, 3, 4]) {
      await talk.send(post(`/echo/${number}`, 'x'.repeat(20_000)))
      await pauseMs(20)
    }
    expect(talk.text).toBe('')
    letGo()
    await talk.receives(4, '[/echo/4')
    expect(talk.text.match(/\[\S+ \d+\]/g)).toEqual([
      '[/echo/1 0]',
      '[/echo/2 20000]',
      '[/echo/3 20000]',
      '[/echo/4 20000]',
    ])
  })

  it('the rest of a refused body is discarded, and the next request is answered', async () => {
    const vendor = await startHttpVendor()
    const { url, records } = await startGatewayWithKeys(vendor)
    const key = 'Authorization: Bearer ada-key\r\n'
    const talk = new Talk(url)
    const whole = post('/echo/1', get('/echo/smuggled', key).repeat(3))
    const cut = whole.indexOf('smuggled')
    await talk.send(whole.slice(0, cut))
    await talk.receives(1, 'UNKNOWN_KEY')
    await talk.send(whole.slice(cut, cut + 50))
    await pauseMs(50)
    await talk.send(whole.slice(cut + 50) + get('/echo/2', key))
    await talk.receives(2, '/echo/2')
    expect(talk.statuses).toEqual([401, 200])
    expect(vendor.requests.map((one) => one.url)).toEqual(['/echo/2'])
    expect(records.map(({ status }) => status)).toEqual([401, 200])
  })

  it('the connection of a refused request is closed if the rest of its body never arrives', async () => {
    const { url } = await startGatewayWithKeys(await startHttpVendor(), { idleMs: 300 })
    const talk = new Talk(url)
    await talk.send(post('/echo/1', 'x'.repeat(50)).slice(0, -5))
    await talk.receives(1, 'UNKNOWN_KEY')
    await until('it is closed', () => talk.closed)
    expect(talk.statuses).toEqual([401])
  })

  it('nothing is read after a refusal that closes the connection', async () => {
    const vendor = await startHttpVendor()
    const { url } = await startEchoGateway(vendor)
    const talk = new Talk(url)
    const whole = post('/echo/%zz', 'x'.repeat(50))
    await talk.send(whole.slice(0, -5))
    await talk.receives(1, 'INVALID_URL')
    expect(talk.text).toContain('onnection: close')
    await talk.send(`xxxxx${get('/echo/2')}`)
    await until('it is closed', () => talk.closed)
    expect(talk.statuses).toEqual([400])
    expect(vendor.requests).toEqual([])
  })

  it('a request cut in its head or body is answered with 400 and logged', async () => {
    const { url, records } = await startEchoGateway(await startHttpVendor())
    const whole = post('/echo/1', 'body')
    for (const cut of [whole.indexOf('\r\n\r\n'), whole.length - 1]) {
      const talk = new Talk(url)
      await talk.send(whole.slice(0, cut))
      await pauseMs(50)
      talk.socket.end()
      await until('it is closed', () => talk.closed)
      expect(talk.statuses).toEqual([400])
    }
    expect(records.map(({ code }) => code)).toEqual(['MALFORMED_REQUEST', 'MALFORMED_REQUEST'])
  })

  it.each(['end', 'resetAndDestroy'] as const)(
    'a request is aborted when its client disconnects (%s)',
    async (how) => {
      const running = await startGateway({}, { knobs: { latencyMs: 60_000 } })
      const talk = new Talk(running.url)
      await talk.send(post('/v1/chat/completions', '{"model":"gpt","messages":[]}'))
      await until('it is asked', () => running.vendor.counts.arrived === 1)
      talk.socket[how]()
      await until('it is over', () => running.records.length === 1)
      expect(running.records[0]).toMatchObject({ status: 499, code: 'HUNG_UP' })
      await expectIdle(running)
    },
  )

  it('non-ASCII bytes and odd header names of a request reach the vendor unchanged', async () => {
    const vendor = await startHttpVendor()
    const { url, failures } = await startEchoGateway(vendor)
    const talk = new Talk(url)
    const odd = 'X-High: caf\xe9\r\n__proto__: x\r\nconstructor: y\r\ntoString: z\r\nX-Empty:\r\n'
    await talk.send(post('/echo/1', '\xff\x00', odd))
    await talk.receives(1)
    const [received] = vendor.requests
    expect(received?.body).toBe('\xff\x00')
    expect(received?.headers).toMatchObject({
      'x-high': 'caf\xe9',
      constructor: 'y',
      tostring: 'z',
      'x-empty': '',
    })
    expect(failures).toEqual([])
  })

  it('a client receives all of a large answer, however slowly it reads', async () => {
    const pieces = 60
    const vendor = await startHttpVendor(async (_, response) => {
      for (let i = 0; i < pieces; i++) {
        const letter = String.fromCharCode(97 + (i % 26))
        if (!response.write(letter.repeat(100_000))) {
          await new Promise((resolve) => response.once('drain', resolve))
        }
      }
      response.end('.')
    })
    const running = await startEchoGateway(vendor)
    const talk = new Talk(running.url)
    talk.socket.pause()
    await talk.send(get('/echo/1'))
    await pauseMs(300)
    // The gateway has not buffered the answer.
    talk.socket.resume()
    await until('all of it is there', () => talk.text.endsWith('0\r\n\r\n'))
    const [head = '', ...body] = talk.text.split('\r\n\r\n')
    expect(head.toLowerCase()).toContain('transfer-encoding: chunked')
    expect(unchunked(body.join('\r\n\r\n')).length).toBe(pieces * 100_000 + 1)
    // The connection can still be used.
    talk.text = ''
    await talk.send(get('/nowhere'))
    await talk.receives(1, 'NOT_FOUND')
  })

  it('a request with Connection: close is the last on its connection', async () => {
    const { url } = await startEchoGateway(await startHttpVendor())
    const talk = new Talk(url)
    await talk.send(get('/echo/1'))
    await talk.receives(1, '/echo/1')
    await talk.send(get('/echo/2', 'Connection: close\r\n'))
    await until('it is closed', () => talk.closed)
    expect(talk.statuses).toEqual([200, 200])
    expect(talk.text).toMatch(/onnection: close\r\n.*\/echo\/2$/s)
  })

  it('an idle connection is closed when the gateway drains', async () => {
    const { url, gateway } = await startEchoGateway(await startHttpVendor(), {
      drain: { graceMs: '10s' },
    })
    const talk = new Talk(url)
    await talk.send(get('/echo/1'))
    await talk.receives(1, '/echo/1')
    expect(talk.closed).toBe(false)
    await gateway.close()
    await expect.poll(() => talk.closed).toBe(true)
  })

  it('running and pipelined requests are answered while the gateway drains', async () => {
    let letGo = () => {}
    const held = new Promise<void>((resolve) => {
      letGo = resolve
    })
    const vendor = await startHttpVendor(async ({ url }, response) => {
      response.write(`[${url}`)
      await held
      response.end(']')
    })
    const { url, gateway } = await startEchoGateway(vendor, { drain: { graceMs: '10s' } })
    const talk = new Talk(url)
    await talk.send(get('/echo/1'))
    // Its head was sent with Connection: keep-alive.
    await talk.receives(1)
    await talk.send(get('/echo/2'))
    await pauseMs(50)
    const closed = gateway.close()
    await pauseMs(50)
    letGo()
    await closed
    await until('it is closed', () => talk.closed)
    expect(talk.statuses).toEqual([200, 200])
    expect(talk.text.match(/\[\S+\s+1\s+\]/g)?.length).toBe(2)
  })
})

describe('mixed requests on many connections', () => {
  it('each request on many connections gets its own answer, in order', async () => {
    const vendor = await startHttpVendor(async ({ url, body }, response) => {
      const [, id = ''] = /id=([\w-]+)/.exec(url) ?? []
      if (url.includes('slow')) await pauseMs(5)
      // The answer has a length or is chunked.
      if (url.includes('pieces')) response.write(`[${id} `)
      else response.setHeader('content-length', id.length + body.length + 3)
      response.end(url.includes('pieces') ? `${body}]` : `[${id} ${body}]`)
    })
    const { url, records, failures } = await startEchoGateway(vendor, {
      body: { keepBytes: 3_000 },
    })
    const answersIn = ({ text }: Talk) =>
      text.replaceAll(/\r\n[\da-f]+\r\n/g, '').match(/\[\d+-\d+ x*\]/g) ?? []
    const converse = async (talk: Talk, name: number): Promise<void> => {
      const { below, pick } = dice(name)
      const expected: string[] = []
      for (let turn = 0; turn < 25; turn++) {
        let text = ''
        // From turn 12 on, requests are pipelined.
        for (let i = turn < 12 ? 1 : 1 + below(3); i > 0; i--) {
          const id = `${name}-${expected.length}`
          const body = 'x'.repeat(pick([0, 0, 1, 500, turn < 12 ? 2_000 : 4_000]))
          const path = `/echo/${pick(['a', 'slow', 'pieces'])}?id=${id}`
          const line = turn < 12 ? '' : pick(['', 'X-Tab: a\tb\r\n'])
          text += body === '' ? get(path, line) : post(path, body, line)
          expected.push(`[${id} ${body}]`)
        }
        for (let at = 0; at < text.length; ) {
          const end = at + 1 + below(text.length)
          await talk.send(text.slice(at, end))
          at = end
          if (below(3) === 0) await pauseMs(1)
        }
        await until('they are answered', () => answersIn(talk).length === expected.length)
      }
      expect(answersIn(talk)).toEqual(expected)
      expect(new Set(talk.statuses)).toEqual(new Set([200]))
    }
    const talks = Array.from({ length: 20 }, () => new Talk(url))
    await Promise.all(talks.map(converse))
    expect(failures).toEqual([])
    await until('all have a line', () => records.length === vendor.requests.length)
  })
})

describe('connection of a client', () => {
  it('a second head that never ends is answered with 408', async () => {
    const { url, records } = await startEchoGateway(await startHttpVendor(), {
      server: { headersMs: 300 },
    })
    const talk = new Talk(url)
    await talk.send(get('/echo/1'))
    await talk.receives(1, '/echo/1')
    await talk.send(get('/echo/2').slice(0, -2))
    await until('it is closed', () => talk.closed)
    expect(talk.statuses).toEqual([200, 408])
    expect(records.map(({ code }) => code)).toEqual([undefined, 'SLOW_HEADERS'])
  })

  it('a client that never ends the body of a refused request is disconnected without a 408', async () => {
    const { url, records } = await startEchoGateway(await startHttpVendor(), {
      server: { headersMs: 300 },
    })
    const talk = new Talk(url)
    await talk.send('POST /nowhere HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\n01234')
    await talk.receives(1, 'NOT_FOUND')
    await talk.send('5')
    await until('it is closed', () => talk.closed)
    expect(talk.statuses).toEqual([404])
    expect(records.map(({ code }) => code)).toEqual(['NOT_FOUND'])
  })

  it('a connection that does not begin like HTTP is answered at once', async () => {
    const { url } = await startEchoGateway(await startHttpVendor())
    for (const start of [
      '\x16\x03\x01\x02\x00\x01\x00\x01',
      'EHLO mail.example\r\n',
      'P0ST / HT',
    ]) {
      const talk = new Talk(url)
      const sinceMs = performance.now()
      await talk.send(start)
      await until('it is closed', () => talk.closed)
      expect(talk.statuses).toEqual([400])
      expect(performance.now() - sinceMs).toBeLessThan(5_000)
    }
  })

  it('an open connection follows the body limits of a reloaded configuration', async () => {
    const vendor = await startHttpVendor()
    const { url, change } = await startEchoGateway(vendor, { body: { keepBytes: 2_000 } })
    const body = 'x'.repeat(1_500)
    const talk = new Talk(url)
    await talk.send(post('/echo/1', body))
    await talk.receives(1, '/echo/1')
    await change({ body: { keepBytes: 1_000, maxBytes: 1_200 } })
    await talk.send(post('/echo/2', body))
    await talk.receives(2, 'TOO_LARGE')
    expect(talk.statuses).toEqual([200, 413])
  })

  it('a reset of a connection with a pending CONNECT does not end the gateway', async () => {
    const vendor = await startHttpVendor((_, response) => {
      response.write('x'.repeat(64_000_000))
    })
    const { url, child } = await startGatewayProcess({
      config: {
        vendors: { echo: { protocol: 'http', url: vendor.url } },
        routes: [{ path: '/echo*', vendor: 'echo' }],
      },
    })
    const talk = new Talk(url)
    talk.socket.pause()
    await talk.send(get('/echo/1'))
    await until('it is asked', () => vendor.requests.length === 1)
    // The answer is larger than the socket buffers.
    await pauseMs(300)
    await talk.send('CONNECT evil.example:443 HTTP/1.1\r\nHost: a\r\n\r\n')
    await pauseMs(100)
    talk.socket.resetAndDestroy()
    await pauseMs(300)
    expect((await fetch(`${url}/health/live`)).status).toBe(200)
    expect(child.exitCode).toBeNull()
  })
})

/** This gateway refuses a request without a key before it reads the body. */
function startGatewayWithKeys(vendor: HttpVendor, server: object = {}) {
  return startGateway(
    {
      vendors: { echo: { protocol: 'http', url: vendor.url, key: 'env:VENDOR' } },
      routes: [{ path: '/echo*', vendor: 'echo' }],
      callers: CALLERS,
      server,
    },
    {},
    { ADA: 'ada-key', VENDOR: 'vendor-key' },
  )
}

function unchunked(text: string): string {
  let body = ''
  for (let at = 0; ; ) {
    const end = text.indexOf('\r\n', at)
    const length = Number.parseInt(text.slice(at, end), 16)
    if (length === 0) return body
    body += text.slice(end + 2, end + 2 + length)
    at = end + 2 + length + 2
  }
}
