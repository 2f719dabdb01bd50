// test-group: sockets

/** How a streamed answer can end, seen by the reader and by the vendor. */
import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { MockKnobs, MockVendor } from '@spillway/mock-vendor'
import type { GuardOptions } from 'spillway'
import { createVirtualClock, type VirtualClock } from 'spillway/testing'
import { describe, expect } from 'vitest'
import { it, onTestFinished } from '../concurrent-tests.js'
import { startVendor } from '../mock-client.js'
import {
  codeOf,
  endsOf,
  errorOf,
  outcomesOf,
  pauseMs,
  question,
  readAll,
  startGuard,
  tokensOf,
  until,
} from './stream-kit.js'

const BREAKER = { consecutiveFailures: 1, openMs: 60_000 }

/** With a virtual clock, the guard's time stands still while the vendor is waited for. */
async function start(knobs: MockKnobs, options: GuardOptions = {}, clock?: VirtualClock) {
  const { vendor, url } = await startVendor({ knobs })
  const guard = startGuard({ concurrency: { limit: 10 }, ...options }, clock)
  const path = `${url}/v1/chat/completions`
  const ask = (signal?: AbortSignal) => guard.fetch(path, question({}, signal))
  return { vendor, guard, path, ask }
}

function bodyOf(response: Response): ReadableStream<Uint8Array> {
  if (response.body === null) throw new Error('it has no body')
  return response.body
}

/** Waits until the vendor sees that its first call was cancelled. Left alone, the call would go on. */
async function cancelled(vendor: MockVendor): Promise<void> {
  await until('the vendor sees it', () => vendor.calls[0]?.end !== 'open')
  expect(vendor.calls[0]?.end).toBe('cancelled')
}

describe.concurrent('cut stream', () => {
  it('a stream cut at 40 of 60 chunks ends with an error, and the breaker counts it', async () => {
    const { vendor, guard, ask } = await start(
      { tokens: 60, cutAfter: 40, tokenMs: 1 },
      { breaker: BREAKER },
    )
    const { chunks, error } = await readAll(bodyOf(await ask()))
    expect(error).toBeInstanceOf(Error)
    const tokens = tokensOf(chunks).trim().split(' ')
    expect(tokens.length).toBeGreaterThan(20)
    expect(tokens.length).toBeLessThan(60)
    expect(tokens).toEqual(tokens.map((_, at) => String(at)))
    expect(vendor.calls[0]?.end).toBe('cut')
    expect(endsOf(guard)).toEqual({ truncated: 1 })
    expect(outcomesOf(guard)).toEqual({ failure: 1 })
    expect(codeOf(await errorOf(ask()))).toBe('CIRCUIT_OPEN')
    expect(guard.snapshot().active).toBe(0)
  })

  it('a cut stream fails every way of reading a response', async () => {
    const { guard, ask } = await start({ tokens: 60, cutAfter: 40, tokenMs: 1 })
    const readers = [
      (response: Response) => response.text(),
      (response: Response) => response.arrayBuffer(),
      (response: Response) => response.blob(),
      (response: Response) => response.clone().text(),
      (response: Response) => bodyOf(response).pipeTo(new WritableStream()),
      (response: Response) =>
        readAll(bodyOf(response).pipeThrough(new TextDecoderStream())).then(({ error }) => {
          if (error !== undefined) throw error
        }),
    ]
    for (const read of readers) expect(await errorOf(read(await ask()))).toBeInstanceOf(Error)
    await until('all have ended', () => guard.snapshot().active === 0)
    expect(endsOf(guard)).toEqual({ truncated: readers.length })
  })

  it('a stream counts as a failure when it breaks, not when its headers arrive', async () => {
    const { vendor, guard, ask } = await start(
      { tokens: 60, tokenMs: 1, stallAfter: 10 },
      { breaker: BREAKER },
    )
    const reader = bodyOf(await ask()).getReader()
    await reader.read()
    expect(outcomesOf(guard)).toEqual({})
    await vendor.close()
    await errorOf(
      (async () => {
        while (!(await reader.read()).done);
      })(),
    )
    expect(outcomesOf(guard)).toEqual({ failure: 1 })
    expect(guard.snapshot().breakers[0]?.state).toBe('open')
  })
})

describe.concurrent('complete stream', () => {
  it('a stream holds its slot until it ends and then counts as a success', async () => {
    const { guard, ask } = await start({ tokens: 20, tokenMs: 2 }, { breaker: BREAKER })
    const response = await ask()
    expect(guard.snapshot().active).toBe(1)
    const reader = bodyOf(response).getReader()
    await reader.read()
    expect(outcomesOf(guard)).toEqual({})
    expect(guard.snapshot().active).toBe(1)
    while (!(await reader.read()).done);
    expect(guard.snapshot().active).toBe(0)
    expect(outcomesOf(guard)).toEqual({ success: 1 })
    expect(endsOf(guard)).toEqual({ complete: 1 })
  })

  it('the end of a stream lets the next call start', async () => {
    const { vendor, ask } = await start(
      { tokens: 10, tokenMs: 2 },
      // No time limit of the queue matters, however slow the machine is.
      { concurrency: { limit: 1 }, queue: { size: 10, timeoutMs: '1h', targetMs: '1h' } },
    )
    const answers = Array.from({ length: 5 }, async () =>
      tokensOf((await readAll(bodyOf(await ask()))).chunks),
    )
    expect(new Set(await Promise.all(answers))).toEqual(new Set(['0 1 2 3 4 5 6 7 8 9']))
    expect(vendor.mostAtOnce).toBe(1)
  })

  it('a guarded response has all properties of a plain one', async () => {
    const { path, ask } = await start({ tokens: 3 })
    const response = await ask()
    const bare = await fetch(path, question())
    for (const field of ['status', 'statusText', 'ok', 'url', 'redirected', 'type'] as const) {
      expect([field, response[field]]).toEqual([field, bare[field]])
    }
    expect(response.headers.get('content-type')).toBe(bare.headers.get('content-type'))
    expect(response).toBeInstanceOf(Response)
    await Promise.all([response.text(), bare.text()])
  })
})

describe.concurrent('silent stream', () => {
  it("firstByteMs ends a stream without a first token and the vendor's request", async () => {
    const { vendor, guard, ask } = await start(
      { stallBefore: true },
      { timeout: { firstByteMs: 1_000, idleMs: 60_000 }, breaker: BREAKER },
    )
    const { error } = await readAll(bodyOf(await ask()))
    expect(error).toMatchObject({ code: 'CALL_TIMEOUT', details: { kind: 'firstByte' } })
    await until('the vendor sees it', () => vendor.calls[0]?.end === 'cancelled')
    expect(endsOf(guard)).toEqual({ stalled: 1 })
    expect(guard.snapshot().breakers[0]?.state).toBe('open')
    expect(guard.snapshot().active).toBe(0)
  })

  it('idleMs ends a stream that falls silent, and earlier chunks were readable', async () => {
    const { vendor, guard, ask } = await start(
      { tokens: 60, stallAfter: 10, tokenMs: 1 },
      { timeout: { firstByteMs: 60_000, idleMs: 1_000 }, breaker: BREAKER },
    )
    const { chunks, error } = await readAll(bodyOf(await ask()))
    expect(tokensOf(chunks)).toBe('0 1 2 3 4 5 6 7 8 9')
    expect(error).toMatchObject({ code: 'CALL_TIMEOUT', details: { kind: 'idle' } })
    await until('the vendor sees it', () => vendor.calls[0]?.end === 'cancelled')
    expect(endsOf(guard)).toEqual({ stalled: 1 })
    expect(outcomesOf(guard)).toEqual({ failure: 1 })
    expect(guard.snapshot().breakers[0]?.state).toBe('open')
  })

  it('timeouts do not run while the body is not being read', async () => {
    const clock = createVirtualClock()
    const { guard, ask } = await start(
      { tokens: 3, tokenMs: 20 },
      { timeout: { firstByteMs: 1_500, idleMs: 1_500 } },
      clock,
    )
    const response = await ask()
    // Longer than both timeouts before the first read and after it.
    await clock.advance(1_600)
    const reader = bodyOf(response).getReader()
    const chunks: Uint8Array[] = []
    for (let next = await reader.read(); !next.done; next = await reader.read()) {
      if (chunks.push(next.value) === 1) await clock.advance(1_600)
    }
    expect(tokensOf(chunks)).toBe('0 1 2')
    expect(endsOf(guard)).toEqual({ complete: 1 })
  })

  it('callMs ends with the headers, so a long stream is not cut', async () => {
    const clock = createVirtualClock()
    const timeout = { callMs: 2_000 }
    const { guard, ask } = await start({ tokens: 60, tokenMs: 2 }, { timeout }, clock)
    const response = await ask()
    await clock.advance(2_100)
    const { chunks, error } = await readAll(bodyOf(response))
    expect(error).toBeUndefined()
    expect(tokensOf(chunks)).toMatch(/ 59$/)
    expect(endsOf(guard)).toEqual({ complete: 1 })
  })
})

describe.concurrent('unread answer', () => {
  it('an unread answer is released after unreadMs', async () => {
    const { vendor, guard, ask } = await start(
      { tokens: 10, stallAfter: 3 },
      { timeout: { unreadMs: 80 }, breaker: BREAKER },
    )
    const response = await ask()
    await until('the vendor sees it', () => vendor.calls[0]?.end === 'cancelled')
    expect(endsOf(guard)).toEqual({ abandoned: 1 })
    expect(outcomesOf(guard)).toEqual({ ignored: 1 })
    expect(guard.snapshot().active).toBe(0)
    // A late reader gets the reason.
    expect(await errorOf(response.text())).toMatchObject({
      code: 'CALL_TIMEOUT',
      details: { kind: 'unread' },
    })
  })

  it('a partly read answer is released after unreadMs', async () => {
    const { vendor, guard, ask } = await start(
      { tokens: 10, stallAfter: 3 },
      { timeout: { unreadMs: 80 } },
    )
    const reader = bodyOf(await ask()).getReader()
    await reader.read()
    await until('the vendor sees it', () => vendor.calls[0]?.end === 'cancelled')
    expect(endsOf(guard)).toEqual({ abandoned: 1 })
  })
})

describe.concurrent('reader that stops early', () => {
  it.each([
    ['cancels the body', async (body: ReadableStream) => body.cancel('enough')],
    [
      'cancels its reader after a chunk',
      async (body: ReadableStream) => {
        const reader = body.getReader()
        await reader.read()
        await reader.cancel()
      },
    ],
    [
      'breaks out of for await',
      async (body: ReadableStream) => {
        for await (const _ of body) break
      },
    ],
    [
      'throws out of for await',
      async (body: ReadableStream) => {
        try {
          for await (const _ of body) throw new Error('no')
        } catch {}
      },
    ],
  ])('a reader that %s cancels at once and counts as ignored', async (_, leave) => {
    const { vendor, guard, ask } = await start({ tokens: 1_000, tokenMs: 5 }, { breaker: BREAKER })
    await leave(bodyOf(await ask()))
    expect(guard.snapshot().active).toBe(0)
    await cancelled(vendor)
    expect(endsOf(guard)).toEqual({ abandoned: 1 })
    expect(outcomesOf(guard)).toEqual({ ignored: 1 })
    expect(guard.snapshot().breakers[0]?.state).toBe('closed')
  })
})

describe.concurrent("caller's abort", () => {
  it.each(['reads', 'does not read'])('an abort reaches the vendor while it %s', async (how) => {
    const { vendor, guard, ask } = await start({ tokens: 10, stallAfter: 3 }, { breaker: BREAKER })
    const leave = new AbortController()
    const body = bodyOf(await ask(leave.signal))
    const reading = how === 'reads' ? readAll(body) : undefined
    await until('three tokens were sent', () => vendor.calls[0]?.tokensSent === 3)
    await pauseMs(10)
    const reason = new Error('enough')
    leave.abort(reason)
    expect(guard.snapshot().active).toBe(0)
    await cancelled(vendor)
    const { error } = await (reading ?? readAll(body))
    expect(error).toBe(reason)
    expect(endsOf(guard)).toEqual({ aborted: 1 })
    expect(outcomesOf(guard)).toEqual({ ignored: 1 })
  })

  it.each(['reads', 'does not read'])(
    'an abort by a signal that only fetch knows frees the slot while its caller %s',
    async (how) => {
      const { guard, path } = await start({ tokens: 10, stallAfter: 3 }, { breaker: BREAKER })
      const leave = new AbortController()
      const init = { ...question(), signal: leave.signal }
      const body = bodyOf(await guard.run(() => fetch(path, init)))
      const reading = how === 'reads' ? readAll(body) : undefined
      leave.abort()
      await until('its slot is free', () => guard.snapshot().active === 0)
      expect((await (reading ?? readAll(body))).error).toMatchObject({ name: 'AbortError' })
      expect(endsOf(guard)).toEqual({ abandoned: 1 })
      expect(outcomesOf(guard)).toEqual({ ignored: 1 })
    },
  )

  it('an abort with a reason, by a signal that only fetch knows, frees the slot and counts as a failure', async () => {
    const { guard, path } = await start({ tokens: 10, stallAfter: 3 }, { breaker: BREAKER })
    const leave = new AbortController()
    const init = { ...question(), signal: leave.signal }
    const body = bodyOf(await guard.run(() => fetch(path, init)))
    leave.abort(new Error('too slow'))
    await until('its slot is free', () => guard.snapshot().active === 0)
    expect((await readAll(body)).error).toMatchObject({ message: 'too slow' })
    expect(endsOf(guard)).toEqual({ truncated: 1 })
    expect(outcomesOf(guard)).toEqual({ failure: 1 })
  })

  it('an answer that breaks off before it is read frees its slot and counts as a failure', async () => {
    let source: ReadableStreamDefaultController | undefined
    const broken = new ReadableStream({
      start(controller) {
        source = controller
      },
    })
    const { guard } = await start({}, { breaker: BREAKER })
    const answer = await guard.run(async () => new Response(broken))
    expect(guard.snapshot().active).toBe(1)
    source?.error(new Error('cut'))
    await until('its slot is free', () => guard.snapshot().active === 0)
    expect((await readAll(bodyOf(answer))).error).toMatchObject({ message: 'cut' })
    expect(endsOf(guard)).toEqual({ truncated: 1 })
    expect(outcomesOf(guard)).toEqual({ failure: 1 })
  })

  it('an abort reaches the vendor after garbage collections, also with connectMs', async () => {
    const { vendor, ask } = await start(
      { tokens: 10, stallAfter: 3 },
      { fetch: { connectMs: 5_000 } },
    )
    const leave = new AbortController()
    const reading = readAll(bodyOf(await ask(leave.signal)))
    await until('three tokens were sent', () => vendor.calls[0]?.tokensSent === 3)
    const junk: unknown[] = []
    for (let i = 0; i < 40; i++) {
      junk.length = 0
      for (let j = 0; j < 20_000; j++) junk.push({ j })
      await pauseMs(1)
    }
    leave.abort()
    await until('the vendor sees it', () => vendor.calls[0]?.end === 'cancelled')
    expect((await reading).error).toMatchObject({ name: 'AbortError' })
  })
})

describe.concurrent('deadline of a stream', () => {
  it('a deadline ends a stream with DEADLINE_EXCEEDED', async () => {
    const clock = createVirtualClock()
    const { vendor, guard, path } = await start({ tokens: 10, stallAfter: 3 }, {}, clock)
    const fetchIn = guard.fetchFor({ timeoutMs: 1_500 })
    const chunks = bodyOf(await fetchIn(path, question())).values()
    expect((await chunks.next()).done).toBe(false)
    const reading = readAll(chunks)
    await clock.advance(1_499)
    expect(guard.snapshot().active).toBe(1)
    await clock.advance(1)
    expect(codeOf((await reading).error)).toBe('DEADLINE_EXCEEDED')
    await until('the vendor sees it', () => vendor.calls[0]?.end === 'cancelled')
    expect(endsOf(guard)).toEqual({ aborted: 1 })
    expect(guard.snapshot().active).toBe(0)
  })
})

describe.concurrent('closing with open streams', () => {
  it('close() lets streams finish within graceMs', async () => {
    const { guard, ask } = await start({ tokens: 20, tokenMs: 5 })
    const reading = readAll(bodyOf(await ask()))
    await guard.close({ graceMs: 100_000 })
    expect((await reading).error).toBeUndefined()
    expect(endsOf(guard)).toEqual({ complete: 1 })
  })

  it('close() cuts streams after graceMs', async () => {
    const { vendor, guard, ask } = await start({ tokens: 1_000, tokenMs: 5 })
    const reading = readAll(bodyOf(await ask()))
    const unread = await ask()
    await guard.close({ graceMs: 80 })
    expect(codeOf((await reading).error)).toBe('SHUTTING_DOWN')
    expect(codeOf(await errorOf(unread.text()))).toBe('SHUTTING_DOWN')
    await until('the vendor is idle', () => vendor.atOnce === 0)
    expect(vendor.counts.cancelled).toBe(2)
    expect(endsOf(guard)).toEqual({ aborted: 2 })
    expect(guard.snapshot().active).toBe(0)
  })
})

describe.concurrent('retry of streams', () => {
  const RETRY: GuardOptions = {
    retry: { attempts: 3, budget: 1, baseMs: 1 },
    fetch: { idempotencyHeader: 'idempotency-key' },
  }

  it('a retry before the first byte releases the discarded answer', async () => {
    const open = new Set<ServerResponse>()
    let requests = 0
    const server = createServer((_, response) => {
      requests++
      open.add(response)
      response.on('close', () => open.delete(response))
      if (requests === 3) return response.end('good')
      // An error whose body never ends.
      response.writeHead(503).write('sorry')
      return undefined
    })
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    onTestFinished(() => {
      server.closeAllConnections()
      server.close()
    })
    const guard = startGuard({ ...RETRY, concurrency: { limit: 1 } })
    const { port } = server.address() as AddressInfo
    const answer = await guard.fetch(`http://127.0.0.1:${port}/`, { method: 'POST', body: 'x' })
    expect(await answer.text()).toBe('good')
    expect(requests).toBe(3)
    await until('the bad ones are closed', () => open.size === 0)
    expect(endsOf(guard)).toEqual({ abandoned: 2, complete: 1 })
    expect(outcomesOf(guard)).toEqual({ failure: 2, success: 1 })
    expect(guard.snapshot().active).toBe(0)
  })

  it('a stream that broke after its first byte is not retried', async () => {
    const { vendor, ask } = await start({ tokens: 10, cutAfter: 4, tokenMs: 1 }, RETRY)
    expect((await readAll(bodyOf(await ask()))).error).toBeInstanceOf(Error)
    await pauseMs(50)
    expect(vendor.counts.arrived).toBe(1)
  })

  it('a request with a streamed body is sent only once', async () => {
    const { vendor, guard, path } = await start({ status: 503 }, RETRY)
    const { body, headers } = question()
    const init = {
      method: 'POST',
      headers: headers as Record<string, string>,
      duplex: 'half' as const,
    }
    const stream = new Blob([body as string]).stream()
    expect((await guard.fetch(path, { ...init, body: stream } as RequestInit)).status).toBe(503)
    const request = new Request(path, { ...init, body: body as string } as RequestInit)
    expect((await guard.fetch(request)).status).toBe(503)
    expect(vendor.counts.arrived).toBe(2)
  })
})

describe.concurrent('backpressure', () => {
  it('a reader that stops also stops the vendor, and nothing is buffered in between', async () => {
    const chunk = Buffer.alloc(64 * 1_024)
    const total = 200 * 1_024 * 1_024
    let written = 0
    const server = createServer((_, response) => {
      const write = () => {
        while (written < total && !response.destroyed) {
          written += chunk.length
          if (!response.write(chunk)) return response.once('drain', write)
        }
        return response.end()
      }
      write()
    })
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    onTestFinished(() => {
      server.closeAllConnections()
      server.close()
    })
    const guard = startGuard()
    const { port } = server.address() as AddressInfo
    const body = bodyOf(await guard.fetch(`http://127.0.0.1:${port}/`))
    await until(
      'it stands still',
      standsStill(() => written),
    )
    const ahead = written
    // Sockets and the parser have their own buffers.
    expect(ahead).toBeLessThan(20 * 1_024 * 1_024)
    const reader = body.getReader()
    let read = 0
    while (read < 5 * 1_024 * 1_024) read += (await reader.read()).value?.length ?? 0
    await until(
      'it stands still',
      standsStill(() => written),
    )
    expect(written - read).toBeLessThan(ahead + 8 * 1_024 * 1_024)
    await reader.cancel()
    expect(endsOf(guard)).toEqual({ abandoned: 1 })
  })
})

/** Whether a number has not changed for a while. */
function standsStill(number: () => number): () => boolean {
  let last = -1
  let sinceMs = 0
  return () => {
    if (number() !== last) {
      last = number()
      sinceMs = performance.now()
    }
    return last > 0 && performance.now() - sinceMs > 150
  }
}
