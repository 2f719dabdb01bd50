/** A streamed probe in virtual time succeeds two seconds after its first byte. */
import { describe, expect, it } from 'vitest'
import { createGuardPod } from '../guard-pod.js'
import { endsOf } from './stream-kit.js'

const OPEN_MS = 1_000

/** A pod with a half-open circuit and a probe whose answer the test writes. */
async function startProbe() {
  const pod = createGuardPod({
    breaker: { consecutiveFailures: 1, openMs: OPEN_MS, probes: 1, successes: 1 },
  })
  const { clock, guard } = pod
  const failed = pod.run(() => Promise.reject(new Error('down')))
  await clock.advance(0)
  expect(failed.state).toBe('rejected')
  await clock.advance(OPEN_MS)
  let out!: ReadableStreamDefaultController<string>
  const source = new ReadableStream<string>({
    start(controller) {
      out = controller
    },
  })
  const answer = pod.run(async () => source)
  await clock.advance(0)
  const reader = (answer.value as ReadableStream<string>).getReader()
  const state = () => guard.snapshot().breakers[0]?.state
  return { ...pod, out, reader, state }
}

describe('streamed probe', () => {
  it('a streamed probe succeeds two seconds after its first byte and not before', async () => {
    const { clock, out, reader, state } = await startProbe()
    expect(state()).toBe('half-open')
    const first = reader.read()
    await clock.advance(10_000)
    expect(state()).toBe('half-open')
    out.enqueue('first')
    await first
    await clock.advance(1_900)
    expect(state()).toBe('half-open')
    await clock.advance(200)
    expect(state()).toBe('closed')
  })

  it('a streamed probe that breaks after that counts as an ordinary failure', async () => {
    const { clock, guard, out, reader, state } = await startProbe()
    out.enqueue('first')
    await reader.read()
    await clock.advance(2_100)
    expect(state()).toBe('closed')
    const next = reader.read().catch((error) => error)
    out.error(new Error('cut'))
    expect(await next).toBeInstanceOf(Error)
    await clock.advance(0)
    expect(endsOf(guard)).toEqual({ truncated: 1 })
    expect(state()).toBe('open')
  })

  it('a streamed probe that breaks before that has failed', async () => {
    const { clock, guard, out, reader, state } = await startProbe()
    out.enqueue('first')
    await reader.read()
    await clock.advance(1_000)
    const next = reader.read().catch((error) => error)
    out.error(new Error('cut'))
    await next
    await clock.advance(0)
    expect(state()).toBe('open')
    expect(guard.snapshot().outcomes.failure).toBe(2)
  })

  it('a streamed probe that ends before that has succeeded', async () => {
    const { clock, out, reader, state } = await startProbe()
    out.enqueue('first')
    await reader.read()
    out.close()
    await reader.read()
    await clock.advance(0)
    expect(state()).toBe('closed')
  })

  it('a streamed probe abandoned by its reader counts nothing and frees its permit', async () => {
    const { clock, guard, out, reader, state, quick } = await startProbe()
    out.enqueue('first')
    await reader.read()
    await reader.cancel()
    await clock.advance(3_000)
    expect(state()).toBe('half-open')
    expect(endsOf(guard)).toEqual({ abandoned: 1 })
    const probe = quick()
    await clock.advance(0)
    expect(probe.state).toBe('resolved')
    expect(state()).toBe('closed')
  })
})
