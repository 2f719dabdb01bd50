// test-group: sockets

/** `connectMs` limits the time to get a connection and nothing else. */
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net'
import { Worker } from 'node:worker_threads'
import { onEvent } from 'spillway'
import { describe, expect, it, onTestFinished } from 'vitest'
import { startVendor } from '../mock-client.js'
import { endsOf, errorOf, outcomesOf, pauseMs, question, startGuard, until } from './stream-kit.js'

/** A port on which connecting never finishes: nothing accepts and the backlog is full. */
async function startBlackHole(): Promise<{ url: string; isBlack: boolean }> {
  // The listening event loop is blocked, so it accepts nothing.
  const worker = new Worker(
    `const { createServer } = require('node:net')
     const { parentPort } = require('node:worker_threads')
     const server = createServer()
     server.listen({ port: 0, host: '127.0.0.1', backlog: 1 }, () => {
       parentPort.postMessage(server.address().port)
       setTimeout(() => Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0), 20)
     })`,
    { eval: true },
  )
  const port = await new Promise<number>((resolve) => worker.once('message', resolve))
  await pauseMs(200)
  const sockets: Socket[] = []
  onTestFinished(async () => {
    for (const socket of sockets) socket.destroy()
    await worker.terminate()
  })
  let isBlack = false
  for (let each = 0; each < 20 && !isBlack; each++) {
    const socket = connect(port, '127.0.0.1')
    socket.on('error', () => {})
    sockets.push(socket)
    const connected = new Promise((resolve) => socket.once('connect', () => resolve(true)))
    isBlack = (await Promise.race([connected, pauseMs(300)])) !== true
  }
  return { url: `http://127.0.0.1:${port}/`, isBlack }
}

describe('connectMs', () => {
  it('connectMs ends a call without a connection with CALL_TIMEOUT', async () => {
    const { url, isBlack } = await startBlackHole()
    expect(isBlack).toBe(true)
    const guard = startGuard({
      fetch: { connectMs: 150 },
      timeout: { callMs: 100_000 },
      concurrency: { limit: 1 },
    })
    const events: unknown[] = []
    onTestFinished(onEvent((event) => events.push(event)))
    const error = await errorOf(guard.fetch(url))
    expect(error).toMatchObject({ code: 'CALL_TIMEOUT', details: { kind: 'connect' } })
    expect(String(error)).toMatch(/vendor: timed out/)
    expect(events).toContainEqual({
      type: 'timeout.fired',
      name: 'vendor',
      kind: 'connect',
      limitMs: 150,
    })
    expect(outcomesOf(guard)).toEqual({ failure: 1 })
    await until('its slot is free', () => guard.snapshot().active === 0)
  })

  it('connectMs does not apply once there is a new or reused connection', async () => {
    const { vendor, url } = await startVendor({
      knobs: { latencyMs: 700, tokens: 2, tokenMs: 200 },
    })
    const guard = startGuard({ fetch: { connectMs: 500 } })
    const fired: unknown[] = []
    onTestFinished(onEvent((event) => event.type === 'timeout.fired' && fired.push(event)))
    for (let each = 0; each < 2; each++) {
      const response = await guard.fetch(`${url}/v1/chat/completions`, question())
      expect(await response.text()).toContain('[DONE]')
      await pauseMs(50)
    }
    expect(fired).toEqual([])
    expect(vendor.sockets.opened).toBe(1)
    expect(endsOf(guard)).toEqual({ complete: 2 })
  })

  it("connectMs does not change the caller's abort or callMs", async () => {
    const { vendor, url } = await startVendor({ knobs: { neverAnswer: true } })
    const guard = startGuard({ fetch: { connectMs: 9_000 }, timeout: { callMs: 1_000 } })
    const path = `${url}/v1/chat/completions`
    expect(await errorOf(guard.fetch(path, question()))).toMatchObject({
      code: 'CALL_TIMEOUT',
      details: { kind: 'call' },
    })
    const reason = new Error('enough')
    expect(await errorOf(guard.fetch(path, question({}, AbortSignal.abort(reason))))).toBe(reason)
    await vendor.waitForIdle()
    expect(vendor.counts.cancelled).toBe(1)
  })

  it('a refused connection fails with the error of fetch', async () => {
    const server: Server = createServer()
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    const { port } = server.address() as AddressInfo
    await new Promise((resolve) => server.close(resolve))
    const guard = startGuard({ fetch: { connectMs: 5_000 } })
    expect(await errorOf(guard.fetch(`http://127.0.0.1:${port}/`))).toMatchObject({
      message: 'fetch failed',
      cause: { code: 'ECONNREFUSED' },
    })
  })
})
