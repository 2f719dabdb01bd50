// test-group: sockets

/** A gateway that stops finishes running requests within graceMs. */
import { connect } from 'node:net'
import { text } from 'node:stream/consumers'
import { createVirtualClock } from 'spillway/testing'
import { describe, expect, it } from 'vitest'
import { errorOf, pauseMs, until } from '../../spillway/test/streams/stream-kit.js'
import { startGateway } from './gateway-kit.js'
import { submit } from './jobs-kit.js'

describe('draining gateway', () => {
  it('a draining gateway is not ready and lets streams end', async () => {
    const { gateway, chat, adminUrl, vendor } = await startGateway(
      { drain: { graceMs: '10s' } },
      { knobs: { tokens: 20, tokenMs: 20 } },
    )
    expect((await fetch(`${adminUrl}/health/ready`)).status).toBe(200)
    const answer = await chat({ stream: true })
    const closed = gateway.close()
    const ready = await fetch(`${adminUrl}/health/ready`)
    expect(ready.status).toBe(503)
    expect(await ready.json()).toEqual({ status: 'draining' })
    expect((await fetch(`${adminUrl}/health/live`)).status).toBe(200)
    expect(await answer.text()).toContain('[DONE]')
    await closed
    expect(vendor.calls[0]?.end).toBe('completed')
    await errorOf(chat())
  })

  it('a draining gateway lets a slow reader receive a complete answer', async () => {
    const { gateway, url } = await startGateway(
      { drain: { graceMs: '20s' } },
      { knobs: { tokens: 200_000 } },
    )
    const socket = connect(Number(new URL(url).port), '127.0.0.1')
    const body = JSON.stringify({ model: 'gpt', messages: [], max_tokens: 200_000 })
    socket.write(
      `POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n${body}`,
    )
    let text = ''
    let closed: Promise<void> | undefined
    for await (const chunk of socket) {
      text += chunk
      closed ??= gateway.close()
      await pauseMs(2)
    }
    await closed
    const [head = '', answer = ''] = text.split('\r\n\r\n')
    const length = Number(/content-length: (\d+)/i.exec(head)?.[1])
    expect(length).toBeGreaterThan(500_000)
    expect(answer.length).toBe(length)
  })

  it('a draining gateway breaks off open streams with an error after graceMs', async () => {
    const clock = createVirtualClock()
    const { gateway, chat, vendor } = await startGateway(
      {},
      { knobs: { tokens: 100_000, tokenMs: 10 } },
      {},
      { clock },
    )
    const answer = await chat({ stream: true })
    const text = answer.text()
    const closed = gateway.close({ graceMs: 60_000 })
    await clock.advance(59_999)
    expect(vendor.atOnce).toBe(1)
    await clock.advance(1)
    await closed
    expect(await text).toMatch(/data: {"error":.*SHUTTING_DOWN.*\n\n$/)
    await until('the vendor is idle', () => vendor.atOnce === 0)
    expect(vendor.calls[0]?.end).toBe('cancelled')
  })

  it('a draining gateway records every request it broke off before it closes', async () => {
    const { gateway, chat, url, adminUrl, records } = await startGateway(
      { guard: { concurrency: { limit: 2 }, queue: { size: 5, timeoutMs: '1m' } } },
      { knobs: { tokens: 10_000, tokenMs: 10 } },
    )
    const port = Number(new URL(url).port)
    const sendAs = (id: string, body: object, mock: object) =>
      chat(body, { headers: { 'x-request-id': id, 'x-mock': JSON.stringify(mock) } })
    const streaming = await sendAs('streams', { stream: true }, {})
    const waiting = sendAs('waits-for-the-vendor', {}, { latencyMs: 60_000 })
    const calls = () => gateway.spillway.snapshot().guards.find(({ name }) => name === 'openai')
    await until('both slots are taken', () => calls()?.active === 2)
    const queued = sendAs('is-in-the-queue', {}, {})
    await until('one is in the queue', () => calls()?.queue.waiting === 1)
    const uploading = connect(port, '127.0.0.1')
    uploading.write(
      'POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\nx-request-id: uploads\r\ncontent-length: 10\r\n\r\n{',
    )
    await untilRunning(adminUrl, 4)
    const ends = Promise.allSettled([streaming.text(), waiting, queued, text(uploading)])
    await gateway.close({ graceMs: 50 })
    expect(records.map(({ id, status, code }) => [id, status, code]).toSorted()).toEqual([
      ['is-in-the-queue', 503, 'SHUTTING_DOWN'],
      ['streams', 200, 'SHUTTING_DOWN'],
      ['uploads', 503, 'SHUTTING_DOWN'],
      ['waits-for-the-vendor', 503, 'SHUTTING_DOWN'],
    ])
    const texts = (await ends).map((each) => (each.status === 'fulfilled' ? each.value : undefined))
    expect(texts.at(-1)).toContain('"code":"SHUTTING_DOWN"')
  })

  it('a draining gateway ends the streams of job followers', async () => {
    const running = await startGateway(
      { jobQueues: { night: { vendor: 'openai', model: 'gpt', keep: 0 } } },
      { knobs: { latencyMs: 60_000 } },
    )
    const { address } = await submit(running)
    const followed = await fetch(running.url + address, {
      headers: { accept: 'text/event-stream' },
    })
    const ended = followed.text().catch(() => '')
    await running.gateway.close({ graceMs: 50 })
    await ended
    const record = running.records.find(({ path }) => path.startsWith('/spillway/jobs'))
    expect(record).toMatchObject({ status: 200, code: 'SHUTTING_DOWN' })
  })

  it('a draining gateway still serves requests during delayMs', async () => {
    const clock = createVirtualClock()
    const written = { drain: { delayMs: '1h' } }
    const { gateway, chat } = await startGateway(written, {}, {}, { clock })
    await chat()
    const closed = gateway.close()
    await clock.advance(3_599_999)
    const late = await chat()
    expect(late.status).toBe(200)
    expect(late.headers.get('connection')).toBe('close')
    await late.text()
    await clock.advance(1)
    await closed
    await errorOf(chat())
  })
})

async function untilRunning(adminUrl: string, requests: number): Promise<void> {
  const metric = `\nspillway_requests_running ${requests}\n`
  while (!(await (await fetch(`${adminUrl}/metrics`)).text()).includes(metric)) await pauseMs(5)
}

describe('admin port', () => {
  it('/metrics covers requests, guards and the process', async () => {
    const { chat, adminUrl, records } = await startGateway({
      guard: { breaker: { consecutiveFailures: 5, openMs: '1m' }, queue: { size: 5 } },
    })
    await chat()
    await until('it is recorded', () => records.length === 1)
    const text = await (await fetch(`${adminUrl}/metrics`)).text()
    expect(text).toMatch(
      /spillway_requests_total\{route="[^"]+",vendor="openai",status="200",reason=""\} 1/,
    )
    expect(text).toMatch(/spillway_request_seconds_count\{[^}]*vendor="openai"\} 1/)
    expect(text).toContain('spillway_tokens_total{vendor="openai",kind="output"} 16')
    expect(text).toContain('spillway_breaker_state{vendor="openai",lane="gpt",state="closed"} 1')
    expect(text).toContain('spillway_calls_active{vendor="openai"} 0')
    expect(text).toContain('nodejs_heap_size_used_bytes')
  })

  it('/snapshot shows the state of the guards', async () => {
    const { chat, adminUrl } = await startGateway()
    await chat()
    const { guards } = (await (await fetch(`${adminUrl}/snapshot`)).json()) as { guards: object[] }
    expect(guards).toContainEqual(expect.objectContaining({ name: 'openai', calls: 1 }))
  })

  it('the data port serves health but no other admin path', async () => {
    const { url } = await startGateway()
    expect((await fetch(`${url}/health/live`)).status).toBe(200)
    expect((await fetch(`${url}/metrics`)).status).toBe(404)
    expect((await fetch(`${url}/snapshot`)).status).toBe(404)
  })
})
