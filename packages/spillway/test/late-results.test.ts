// test-group: sockets

/** Answers that arrive after their call was given up: their connection must be released. */
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { PassThrough } from 'node:stream'
import { describe, expect, it, onTestFinished } from 'vitest'
import { sleep } from '../src/core/time/sleep.js'
import type { GuardOptions } from '../src/guard/options.js'
import { createSpillway } from '../src/guard/spillway.js'
import { createHedge } from '../src/local/hedge/hedge.js'
import { createTimeout } from '../src/local/timeout/timeout.js'
import { createVirtualClock } from '../src/testing/virtual-clock.js'
import { createGuardPod, EVERYWHERE } from './guard-pod.js'

/** Answers of a function that ignores its signal. */
const KINDS = {
  Response: () => webAnswer((stream) => new Response(stream)),
  'web stream': () => webAnswer((stream) => stream),
  'Node stream': () => {
    const stream = new PassThrough()
    return {
      value: stream as unknown,
      get released() {
        return stream.destroyed
      },
    }
  },
  '{ body } of undici': () => {
    const body = new PassThrough()
    return {
      value: { statusCode: 200, headers: {}, body } as unknown,
      get released() {
        return body.destroyed
      },
    }
  },
}

function webAnswer(wrap: (stream: ReadableStream) => unknown) {
  const answer = { value: undefined as unknown, released: false }
  const stream = new ReadableStream({
    cancel() {
      answer.released = true
    },
  })
  answer.value = wrap(stream)
  return answer
}

describe.each(Object.entries(KINDS))('a late %s', (_, make) => {
  it('a late result is released after a timeout of createTimeout', async () => {
    const clock = createVirtualClock()
    const answer = make()
    const call = createTimeout({ callMs: 100, clock }).run(async () => {
      await sleep(clock, 500)
      return answer.value
    })
    await expect(clock.until(call)).rejects.toMatchObject({ code: 'CALL_TIMEOUT' })
    await clock.advance(1_000)
    expect(answer.released).toBe(true)
  })

  it('a late result is released after the caller of createTimeout aborted', async () => {
    const clock = createVirtualClock()
    const answer = make()
    const leaving = new AbortController()
    const call = createTimeout({ callMs: 10_000, clock }).run(
      async () => {
        await sleep(clock, 500)
        return answer.value
      },
      { signal: leaving.signal },
    )
    leaving.abort(new Error('left'))
    await expect(call).rejects.toThrow('left')
    await clock.advance(1_000)
    expect(answer.released).toBe(true)
  })

  it('a late result is released if it lost a hedge of createHedge', async () => {
    const clock = createVirtualClock()
    const answer = make()
    const call = createHedge({ delayMs: 100, clock, budget: 1 }).run(async ({ hedge }) => {
      if (hedge) return 'won'
      await sleep(clock, 500)
      return answer.value
    })
    await expect(clock.until(call)).resolves.toBe('won')
    await clock.advance(1_000)
    expect(answer.released).toBe(true)
  })

  it('a late result is released if the caller of createHedge aborted', async () => {
    const clock = createVirtualClock()
    const answer = make()
    const leaving = new AbortController()
    const run = async () => {
      await sleep(clock, 500)
      return answer.value
    }
    const call = createHedge({ clock }).run(run, { signal: leaving.signal })
    leaving.abort(new Error('left'))
    await expect(call).rejects.toThrow('left')
    await clock.advance(1_000)
    expect(answer.released).toBe(true)
  })

  describe.each(EVERYWHERE)('of a guard with store %s', (where) => {
    function setup(options: GuardOptions) {
      const pod = createGuardPod(options, { where })
      const answer = make()
      const late = async () => {
        await sleep(pod.clock, 500)
        return answer.value
      }
      return { ...pod, answer, late }
    }

    it('a late result of a guard is released after a timeout', async () => {
      const { clock, run, late, answer } = setup({ timeout: { callMs: 100 } })
      const call = run(late)
      await clock.advance(1_000)
      expect(call.error).toMatchObject({ code: 'CALL_TIMEOUT' })
      expect(answer.released).toBe(true)
    })

    it('a late result of a guard is released after the deadline of the call', async () => {
      const { clock, run, late, answer } = setup({})
      const call = run(late, { timeoutMs: 100 })
      await clock.advance(1_000)
      expect(call.error).toMatchObject({ code: 'DEADLINE_EXCEEDED' })
      expect(answer.released).toBe(true)
    })

    it('a late result of a guard is released after the caller aborted', async () => {
      const { clock, run, late, answer } = setup({})
      const leaving = new AbortController()
      const call = run(late, { signal: leaving.signal })
      await clock.advance(100)
      leaving.abort(new Error('left'))
      await clock.advance(1_000)
      expect(call.error).toMatchObject({ message: 'left' })
      expect(answer.released).toBe(true)
    })

    it('a late result of a guard is released after close()', async () => {
      const { clock, run, late, answer, guard } = setup({})
      const call = run(late)
      await clock.advance(100)
      await clock.until(guard.close({ graceMs: 0 }))
      await clock.advance(1_000)
      expect(call.state).toBe('rejected')
      expect(answer.released).toBe(true)
    })

    it('a late result of a guard is released if it lost a hedge', async () => {
      const { clock, run, late, answer } = setup({
        hedge: { delayMs: 100 },
        concurrency: { limit: 10 },
      })
      const call = run(({ hedge }) => (hedge ? Promise.resolve('won') : late()))
      await clock.advance(1_000)
      expect(call.value).toBe('won')
      expect(answer.released).toBe(true)
    })
  })
})

describe('a failed answer that is still held when the caller aborts', () => {
  it('a failed answer is released when the caller aborts before the other attempt has ended', async () => {
    const clock = createVirtualClock()
    const failed = KINDS.Response()
    const body = (failed.value as Response).body
    const answer = new Response(body, { status: 503 })
    const leaving = new AbortController()
    const call = createHedge({ delayMs: 100, clock, budget: 1 }).run(
      async ({ hedge }) => {
        if (hedge) return new Promise(() => {})
        await sleep(clock, 200)
        return answer
      },
      { signal: leaving.signal },
    )
    await clock.advance(300)
    leaving.abort(new Error('left'))
    await expect(call).rejects.toThrow('left')
    await clock.advance(1)
    expect(failed.released).toBe(true)
  })
})

describe('guard.fetch', () => {
  it('guard.fetch closes the connection of a late answer although its fetch ignores the signal', async () => {
    const served = deferred()
    const closed = deferred()
    const server = createServer((_, response) => {
      response.on('close', () => closed.resolve())
      response.writeHead(200).write('the beginning of a body without end')
      served.resolve()
    }).listen(0, '127.0.0.1')
    onTestFinished(() => {
      server.closeAllConnections()
      server.close()
    })
    await new Promise((resolve) => server.once('listening', resolve))
    const { port } = server.address() as AddressInfo
    const spillway = createSpillway()
    onTestFinished(() => spillway.close({ graceMs: 0 }))
    const gate = deferred()
    const ignoresSignal = async (input: unknown) => {
      const response = await globalThis.fetch(input as string)
      await gate.promise
      return response
    }
    const { fetch } = spillway.guard('vendor', { fetch: { fetch: ignoresSignal } })
    const leaving = new AbortController()
    const call = fetch(`http://127.0.0.1:${port}/`, { signal: leaving.signal })
    await served.promise
    leaving.abort(new Error('left'))
    await expect(call).rejects.toThrow('left')
    gate.resolve()
    await closed.promise
  })
})

function deferred() {
  let resolve = () => {}
  const promise = new Promise<void>((done) => {
    resolve = done
  })
  return { promise, resolve }
}
