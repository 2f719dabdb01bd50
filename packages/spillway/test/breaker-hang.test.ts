import { describe, expect, it } from 'vitest'
import { createSpillway } from '../src/guard/spillway.js'
import { createCircuitBreaker } from '../src/shared/circuit-breaker/circuit-breaker.js'
import { memoryStore } from '../src/store/memory/memory-store.js'
import { createVirtualClock, type VirtualClock } from '../src/testing/virtual-clock.js'

type Run = (fn: () => Promise<unknown>) => Promise<unknown>

const POLICY = { failureRate: 0.5, minimumCalls: 10, windowMs: 30_000 }

/** Each way to use a breaker: how it runs a call, and what state it is in. */
const BREAKERS: Record<string, (clock: VirtualClock) => { run: Run; state(): string }> = {
  'a guard': (clock) => {
    const spillway = createSpillway({ store: memoryStore({ clock }), clock })
    const guard = spillway.guard('vendor', { breaker: POLICY })
    return { run: (fn) => guard.run(fn), state: () => guard.breaker?.state() ?? '' }
  },
  'a circuit breaker': (clock) => {
    const breaker = createCircuitBreaker({ name: 'vendor', clock, ...POLICY })
    return { run: (fn) => breaker.run(fn), state: () => breaker.state() }
  },
}

/** 300 answers, then 20 calls that time out after 10 s, with another call that begins and ends every second. */
async function hang(name: keyof typeof BREAKERS, beside: () => unknown): Promise<string> {
  const clock = createVirtualClock()
  const { run, state } = (BREAKERS[name] as (typeof BREAKERS)[string])(clock)
  const after = (delayMs: number, end: () => unknown) => () =>
    new Promise((resolve, reject) => {
      clock.schedule(delayMs, () => {
        try {
          resolve(end())
        } catch (error) {
          reject(error)
        }
      })
    })
  const swallow = (call: Promise<unknown>) => void call.catch(() => {})
  for (let index = 0; index < 300; index++) swallow(run(after(1_000, () => 'answer')))
  await clock.advance(1_100)
  const timeOut = () => {
    throw Object.assign(new Error('timed out'), { name: 'TimeoutError' })
  }
  for (let index = 0; index < 20; index++) swallow(run(after(10_000, timeOut)))
  for (let second = 0; second < 12; second++) {
    swallow(run(after(500, beside)))
    await clock.advance(1_000)
  }
  return state()
}

describe.each(Object.keys(BREAKERS))('a downstream that hangs, behind %s', (name) => {
  it(`404 answers keep ${name} closed while other calls time out`, async () => {
    const notFound = () => {
      throw Object.assign(new Error('not found'), { status: 404 })
    }
    expect(await hang(name, notFound)).toBe('closed')
  })

  it(`calls that their callers abort do not keep ${name} closed while others time out`, async () => {
    const aborted = () => {
      throw Object.assign(new Error('aborted'), { name: 'AbortError' })
    }
    expect(await hang(name, aborted)).toBe('open')
  })
})
