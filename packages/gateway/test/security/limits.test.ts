// test-group: io, slow

/** Clients that are slow or take more than their share. */
import { once } from 'node:events'
import type { Socket } from 'node:net'
import { clientNetwork } from 'spillway/http'
import { describe, expect, it } from 'vitest'
import { until } from '../../../spillway/test/streams/stream-kit.js'
import { expectIdle, startGateway, startVendor } from '../gateway-kit.js'
import { startGatewayProcess } from '../gateway-process.js'
import { connectTo, exchangeRaw, statusesIn } from './raw.js'
import { PATH, VALID } from './tricks.js'

const HEAD = `POST ${PATH} HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\n`

describe('slow clients', () => {
  it('a client with unfinished headers gets a 408, and a silent one nothing', async () => {
    const { url, records, vendor } = await startGateway({ server: { headersMs: 300 } })
    const [slow, silent] = await Promise.all([exchangeRaw(url, HEAD), exchangeRaw(url, '')])
    expect(slow).toMatchObject({ statuses: [408], closed: true })
    expect(silent).toMatchObject({ text: '', closed: true })
    expect(records.map(({ code }) => code)).toEqual(['SLOW_HEADERS'])
    expect(vendor.counts.arrived).toBe(0)
  })

  it('a client with an unfinished body gets a 408 without a vendor call', async () => {
    const { url, records, vendor } = await startGateway({ server: { bodyMs: 300 } })
    const { statuses, closed } = await exchangeRaw(
      url,
      `${HEAD}Content-Length: 99\r\n\r\n{"model":`,
    )
    expect([statuses, closed]).toEqual([[408], true])
    expect(records.map(({ code }) => code)).toEqual(['SLOW_BODY'])
    expect(vendor.counts.arrived).toBe(0)
  })

  it('a slow streamed body frees its slot', async () => {
    const running = await startGateway({
      server: { bodyMs: 300 },
      body: { keepBytes: 10 },
      guard: { breaker: { consecutiveFailures: 1, openMs: '1m' } },
      routes: [{ path: '/v1/*', vendor: 'openai' }],
    })
    // Bodies of stored files are not read, so they are streamed.
    const head = HEAD.replace('/chat/completions', '/files').replace(
      'application/json',
      'multipart/form-data; boundary=x',
    )
    const { statuses } = await exchangeRaw(
      running.url,
      `${head}Content-Length: 99\r\n\r\n--x and more`,
    )
    expect(statuses).toEqual([408])
    await expectIdle(running)
    // The breaker counted no failure of the vendor.
    expect((await running.chat()).status).toBe(200)
  })

  it('a client that sends steadily may take its time', async () => {
    const { url } = await startGateway({ server: { bodyMs: 1_100, bodyBytesPerSecond: 5 } })
    const socket = connectTo(url)
    let text = ''
    socket.on('data', (chunk) => {
      text += chunk
    })
    const body = '{"model":"gpt","messages":[]}'
    socket.write(`${HEAD}Content-Length: ${body.length}\r\n\r\n`)
    for (const letter of body) {
      socket.write(letter)
      await new Promise((resolve) => setTimeout(resolve, 100))
    }
    await until('it is answered', () => text.includes('"usage"'))
    expect(statusesIn(text)).toEqual([200])
    socket.destroy()
  })

  it('a client that does not read its answer is disconnected and its call aborted', async () => {
    const running = await startGateway(
      { server: { unreadMs: 500 } },
      { knobs: { tokens: 1_000_000, tokenMs: 0 } },
    )
    const socket = connectTo(running.url).on('error', () => {})
    socket.pause()
    const body = '{"model":"gpt","stream":true,"messages":[]}'
    socket.write(`${HEAD}Content-Length: ${body.length}\r\n\r\n${body}`)
    await until('it has been given up', () => running.records.length === 1)
    expect(running.records[0]).toMatchObject({ code: 'HUNG_UP', end: 'aborted' })
    await expectIdle(running)
    socket.destroy()
  })
})

describe('connection limits', () => {
  it('a connection with unread answers of any kind is closed', async () => {
    const limits = { unreadMs: 500, connectionsPerAddress: 1 }
    const { url } = await startGateway({ server: limits })
    const socket = connectTo(url).on('error', () => {})
    socket.pause()
    await once(socket, 'connect')
    socket.write('GET /health/live HTTP/1.1\r\nHost: a\r\n\r\n'.repeat(60_000))
    const enough = (text: string) => text.includes('"usage"')
    // Until then no other connection is accepted.
    expect(await exchangeRaw(url, VALID, { enough })).toMatchObject({ statuses: [] })
    while ((await exchangeRaw(url, VALID, { enough })).statuses[0] !== 200);
    socket.destroy()
  })

  it('connections are limited per address', async () => {
    const { url, adminUrl } = await startGateway({ server: { connectionsPerAddress: 3 } })
    const held = [1, 2, 3].map(() => connectTo(url))
    await Promise.all(held.map((socket) => once(socket, 'connect')))
    expect(await exchangeRaw(url, VALID)).toMatchObject({ text: '', closed: true })
    const enough = (text: string) => text.includes('"usage"')
    expect(await exchangeRaw(url, VALID, { from: '127.0.0.2', enough })).toMatchObject({
      statuses: [200],
    })
    for (const socket of held) socket.destroy()
    // The other end may notice it later.
    while ((await exchangeRaw(url, VALID, { enough })).statuses[0] !== 200);
    const metrics = await (await fetch(`${adminUrl}/metrics`)).text()
    expect(metrics).toMatch(/spillway_connections_refused_total [1-9]/)
  })

  it('connections of all addresses together are limited', async () => {
    const { url } = await startGateway({ server: { connections: 3 } })
    const held = ['127.0.0.1', '127.0.0.2', '127.0.0.3'].map((from) => connectTo(url, from))
    await Promise.all(held.map((socket) => once(socket, 'connect')))
    expect(await exchangeRaw(url, VALID, { from: '127.0.0.4' })).toMatchObject({
      text: '',
      closed: true,
    })
    for (const socket of held) socket.destroy()
    const enough = (text: string) => text.includes('"usage"')
    // The gateway may notice the closed connections later.
    while ((await exchangeRaw(url, VALID, { from: '127.0.0.4', enough })).statuses[0] !== 200);
  })

  it('an idle connection is closed', async () => {
    const { url } = await startGateway({ server: { idleMs: 300 } })
    const { statuses, closed } = await exchangeRaw(url, VALID)
    expect([statuses, closed]).toEqual([[200], true])
  })

  it.each([
    ['10.0.0.1', '10.0.0.1'],
    ['::ffff:10.0.0.1', '10.0.0.1'],
    ['2001:db8:1:2:3:4:5:6', '2001:db8:1:2::/64'],
    ['2001:db8::1', '2001:db8:0:0::/64'],
    ['::1', '0:0:0:0::/64'],
  ])('a connection from %s counts as one from %s', (remote, address) => {
    expect(clientNetwork(remote)).toBe(address)
  })
})

it('gateway serves others while 500 slow connections send headers byte by byte, and cuts those', async () => {
  const { url: vendorUrl, vendor } = await startVendor({ knobs: { tokens: 3 } })
  const { url, child, stdout } = await startGatewayProcess({
    config: {
      vendors: { openai: { protocol: 'openai', url: vendorUrl } },
      server: { headersMs: '1s', connectionsPerAddress: 500 },
    },
  })
  let [open, cut, answered, lost, isOver] = [0, 0, 0, 0, false]
  const attackers = new Set<Socket>()
  const attack = (): void => {
    const socket = connectTo(url, '127.0.0.9')
    open++
    attackers.add(socket)
    socket.on('error', () => {}).on('data', () => {})
    socket.write('GET / HTTP/1.1\r\nHost: a\r\nX-Slow: ')
    const trickle = setInterval(() => socket.write('y'), 200)
    socket.once('close', () => {
      clearInterval(trickle)
      open--
      attackers.delete(socket)
      if (isOver) return
      cut++
      attack()
    })
  }
  for (let i = 0; i < 500; i++) attack()
  // Each of the first five hundred is cut off, and others are served all the time.
  while (cut < 500 || answered <= 20) {
    const one = await fetch(`${url}${PATH}`, {
      method: 'POST',
      body: '{"model":"gpt","messages":[]}',
    }).then(
      (answer) => answer.text().then(() => answer.status),
      () => 0,
    )
    if (one === 200) answered++
    else lost++
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
  isOver = true
  for (const socket of attackers) socket.destroy()
  await until('the attackers are gone', () => open === 0)
  expect(lost).toBe(0)
  expect(vendor.counts.arrived).toBe(answered)
  await until('they are logged', () => stdout().split('SLOW_HEADERS').length > 500)
  expect(child.exitCode).toBeNull()
})
