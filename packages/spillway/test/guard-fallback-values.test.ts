/** Fallbacks for values that are judged failures, not only for errors. */
import { describe, expect, it } from 'vitest'
import { staleCache } from '../src/degrade/stale-cache.js'
import { otherGuard, reduced, staticValue } from '../src/degrade/steps.js'
import type { GuardOptions } from '../src/guard/options.js'
import type { DegradedReason } from '../src/guard/stages/fallback.js'
import { RELAYED } from '../src/guard/stream/relayed.js'
import { createGuardPod } from './guard-pod.js'

interface Body {
  response: Response
  state: 'unread' | 'read' | 'cancelled'
}

/** A response whose body knows whether it was read or cancelled. */
function answer(status: number, text = `body of ${status}`): Body {
  const body: Body = { response: undefined as never, state: 'unread' }
  const stream = new ReadableStream<Uint8Array>(
    {
      pull(controller) {
        body.state = 'read'
        controller.enqueue(new TextEncoder().encode(text))
        controller.close()
      },
      cancel() {
        body.state = 'cancelled'
      },
    },
    { highWaterMark: 0 },
  )
  body.response = new Response(stream, { status })
  return body
}

const podWith = (options: GuardOptions) =>
  createGuardPod({ timeout: { callMs: '10s' }, ...options })

describe('fallbacks for values that are judged failures', () => {
  it('fallback answers for a returned 503, whose body is cancelled unread', async () => {
    const { clock, guard } = podWith({ fallback: [staticValue('less')] })
    const failed = answer(503)
    const result = await clock.until(guard.runDegradable(() => failed.response))
    expect(result).toMatchObject({ value: 'less', degraded: true, reason: 'error', step: 'static' })
    expect(failed.state).toBe('cancelled')
    expect(guard.snapshot()).toMatchObject({ active: 0, fallbacks: [{ step: 'static', count: 1 }] })
  })

  it('fallback answers for a value that classify calls a failure', async () => {
    let judged = 0
    const { clock, guard } = podWith({
      fallback: [reduced((_context, { value, error }) => ({ instead: value, error }))],
      classify: (end) => {
        judged++
        return 'value' in end && end.value === 'nonsense' ? 'failure' : undefined
      },
    })
    expect(await clock.until(guard.run<unknown>(() => 'nonsense'))).toEqual({
      instead: 'nonsense',
      error: undefined,
    })
    expect(judged).toBe(1)
    expect(await clock.until(guard.run(() => 'sense'))).toBe('sense')
  })

  it('fallback answers only after the last retry', async () => {
    const { clock, guard } = podWith({
      retry: { attempts: 3, budget: 1, baseMs: 10 },
      fallback: [staticValue('less')],
    })
    const statuses: number[] = []
    const respond = (attempt: number) => {
      statuses.push(attempt < 3 ? 503 : 502)
      return answer(attempt < 3 ? 503 : 502).response
    }
    expect(await clock.until(guard.run<unknown>(({ attempt }) => respond(attempt)))).toBe('less')
    expect(statuses).toEqual([503, 503, 502])
    // The budget of the first call's retries.
    await clock.advance(20_000)
    const recovers = (attempt: number) => answer(attempt < 3 ? 503 : 200).response
    const value = await clock.until(guard.run(({ attempt }) => recovers(attempt)))
    expect(value.status).toBe(200)
    expect(await value.text()).toBe('body of 200')
  })

  it('response stays unread while fallbacks are tried, and is returned unchanged if none has an answer', async () => {
    const states: string[] = []
    const failed = answer(503, 'try later')
    const { clock, guard } = podWith({
      fallback: [
        reduced(() => {
          states.push(failed.state)
          return undefined
        }),
        reduced(() => Promise.reject(new Error('no'))),
      ],
    })
    const result = await clock.until(guard.runDegradable(() => failed.response))
    expect(result.degraded).toBe(false)
    expect(result.value.status).toBe(503)
    expect(states).toEqual(['unread'])
    expect(failed.state).toBe('unread')
    expect(await result.value.text()).toBe('try later')
  })

  it.each([
    [404, 'ignored'],
    [425, 'ignored'],
    [200, 'success'],
  ])('no fallback is used for a returned %i, which is judged %s', async (status) => {
    const { clock, guard } = podWith({ fallback: [staticValue('less')] })
    const { response } = answer(status)
    expect((await clock.until(guard.run(() => response))).status).toBe(status)
  })

  it('no fallback is used for a slow value', async () => {
    const { clock, guard } = podWith({
      breaker: { slowMs: 1, failureRate: 1 },
      classify: () => 'slow',
      fallback: [staticValue('less')],
    })
    expect(await clock.until(guard.run(() => 'late'))).toBe('late')
  })

  it.each<[string, DegradedReason[] | undefined, unknown]>([
    ['without on', undefined, 429],
    ['with on: error', ['error'], 429],
    ['with on: limited', ['limited'], 'less'],
  ])('fallback %s gets a returned 429 only if it names limited', async (_name, on, expected) => {
    const { clock, guard } = podWith({
      basePauseMs: 1,
      fallback: [staticValue('less', on && { on })],
    })
    const value = await clock.until(guard.run<unknown>(() => answer(429).response))
    expect(value instanceof Response ? value.status : value).toBe(expected)
  })

  it('stale cache learns only values that are judged a success', async () => {
    const cache = staleCache({ maxAgeMs: '1h' })
    const { clock, guard } = podWith({
      fallback: [cache],
      classify: (end) => {
        const value =
          'value' in end ? (end.value as { outcome?: 'failure' | 'ignored' }) : undefined
        return value?.outcome
      },
    })
    const ask = (value: unknown) => clock.until(guard.runDegradable(() => value, { cacheKey: 'k' }))
    const bad = { outcome: 'failure', text: 'oops' }
    expect(await ask(bad)).toMatchObject({ value: bad, degraded: false })
    expect(await ask({ outcome: 'ignored', text: 'wrong request' })).toMatchObject({
      degraded: false,
    })
    expect(cache.size).toBe(0)
    const good = { text: 'good' }
    expect(await ask(good)).toMatchObject({ value: good, degraded: false })
    expect(await ask(bad)).toMatchObject({ value: good, degraded: true, step: 'stale-cache' })
    expect(await ask(bad)).toMatchObject({ value: good, degraded: true })
  })

  it('failed answer of another guard is no answer, and its body is cancelled', async () => {
    const { clock, guard, spillway } = podWith({})
    await clock.until(guard.close())
    const other = spillway.guard('other', { timeout: { callMs: '10s' } })
    const second = answer(500)
    const first = answer(503)
    const main = spillway.guard('main', {
      timeout: { callMs: '10s' },
      fallback: [otherGuard(other, () => second.response), staticValue('less')],
    })
    expect(await clock.until(main.run<unknown>(() => first.response))).toBe('less')
    expect([first.state, second.state]).toEqual(['cancelled', 'cancelled'])
    const plain = spillway.guard('plain', {
      timeout: { callMs: '10s' },
      fallback: [otherGuard(other, () => answer(200).response)],
    })
    const value = await clock.until(plain.run(() => answer(503).response))
    expect(value.status).toBe(200)
  })

  it('no fallback is used once the caller has aborted', async () => {
    const { clock, guard } = podWith({ fallback: [staticValue('less')] })
    const leave = new AbortController()
    const call = guard.run<unknown>(
      () => {
        leave.abort()
        return answer(503).response
      },
      { signal: leave.signal },
    )
    const end = await clock.until(call.catch((error) => error))
    expect(end).not.toBe('less')
  })

  it('no fallback is used for a body that its owner passes on', async () => {
    const { clock, guard } = podWith({ classify: () => 'failure', fallback: [staticValue('less')] })
    const relayed = { [RELAYED]: () => ({ breakOff() {} }) }
    expect(await clock.until(guard.run<unknown>(() => relayed))).toBe(relayed)
    await clock.until(guard.close({ graceMs: 0 }))
  })

  it('fallback that does not name limited is not used for a returned undefined that is judged throttled', async () => {
    const throttled: GuardOptions = { classify: () => 'throttled' }
    const { clock, guard } = podWith({ ...throttled, fallback: [staticValue('less')] })
    const nothing = () => undefined
    expect(await clock.until(guard.run<unknown>(nothing))).toBeUndefined()
    const named = podWith({ ...throttled, fallback: [staticValue('less', { on: ['limited'] })] })
    expect(await named.clock.until(named.guard.run<unknown>(nothing))).toBe('less')
  })

  it('fallback that does not name limited is used for a thrown undefined or refusal that is judged throttled', async () => {
    const { clock, guard } = podWith({
      classify: () => 'throttled',
      fallback: [staticValue('less')],
    })
    expect(await clock.until(guard.run<unknown>(() => Promise.reject(undefined)))).toBe('less')
  })
})
