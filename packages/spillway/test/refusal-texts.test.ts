/** The messages of refusals: what happened, the numbers, the setting, and what to do. */
import { describe, expect, it } from 'vitest'
import { readableTime, type SpillwayError, storeProblem } from '../src/core/errors.js'
import type { GuardOptions } from '../src/guard/options.js'
import type { RunOptions } from '../src/guard/run-options.js'
import { createSpillway } from '../src/guard/spillway.js'
import { createGuardPod } from './guard-pod.js'

/** The refusal of the last of these calls. */
async function refusalOf(options: GuardOptions, ...calls: RunOptions[]): Promise<SpillwayError> {
  const { clock, quick } = createGuardPod(options)
  let error: unknown
  for (const each of calls) {
    const call = quick(each)
    await clock.settle()
    error = call.error
  }
  return error as SpillwayError
}

describe('text of a used-up limit', () => {
  it('a refusal in one lane names the unit in the singular, the lane, limits and queue', async () => {
    const limits = [{ limit: 1, windowMs: '1m' }] as const
    const error = await refusalOf({ limits: [...limits] }, { lane: 'gpt' }, { lane: 'gpt' })
    expect(error.message).toBe(
      'openai: the call needs 1 request, and 0 of 1 are left in lane gpt (limits); retry in 1 min, or set queue so that calls wait',
    )
    expect(error.retryAfterMs).toBeGreaterThan(60_000)
  })

  it('a refusal names queue.timeoutMs if a longer wait in the queue would have helped', async () => {
    const options: GuardOptions = {
      limits: [{ unit: 'tokens', limit: 90, windowMs: '1m' }],
      queue: { size: 5, timeoutMs: '10s' },
    }
    const error = await refusalOf(options, { cost: { tokens: 89 } }, { cost: { tokens: 7 } })
    expect(error.message).toBe(
      'openai: the call needs 7 tokens (estimated), and 1 of 90 is left in lane default (limits); retry in 1 min, or raise queue.timeoutMs so that calls wait longer',
    )
    const deadline = { cost: { tokens: 7 }, timeoutMs: 100 }
    const hasty = await refusalOf(
      { ...options, queue: { size: 5, timeoutMs: '2m' } },
      { cost: { tokens: 89 } },
      deadline,
    )
    expect(hasty.message).not.toContain('queue.timeoutMs')
  })

  it('a refusal by a limit of all lanes names no lane', async () => {
    const limits: GuardOptions['limits'] = [{ limit: 1, windowMs: '1m', per: 'vendor' }]
    const error = await refusalOf({ limits }, { lane: 'a' }, { lane: 'b' })
    expect(error.message).toContain('0 of 1 are left for all lanes together (limits)')
    expect(error.message).not.toContain('lane b')
  })

  it('a refusal by a limit of a pool names the pool and no lane', async () => {
    const options: GuardOptions = {
      pools: { opus: { limits: [{ limit: 1, windowMs: '1m' }] } },
      lanes: [{ match: 'opus-*', pool: 'opus' }],
    }
    const error = await refusalOf(options, { lane: 'opus-4' }, { lane: 'opus-3' })
    expect(error.message).toContain('0 of 1 are left in pool opus (limits)')
    expect(error.message).not.toContain('in lane')
  })
})

describe('text of a refusal while the store does not answer', () => {
  async function withSlowStore(outage: 'share' | 'refuse'): Promise<SpillwayError> {
    const limits: GuardOptions['limits'] = [{ unit: 'tokens', limit: 2, windowMs: '1m', outage }]
    const pod = createGuardPod({ limits }, { where: 'remote' })
    await pod.clock.advance(2_000)
    pod.connection?.setLatency('1m')
    await pod.clock.advance(10_000)
    for (let call = 0; call < 5; call++) pod.quick({ cost: { tokens: 1 } })
    const last = pod.quick({ cost: { tokens: 1 } })
    await pod.clock.advance(100)
    return last.error as SpillwayError
  }

  it("the refusal of the outage rule 'refuse' has the reason, the option and the unit", async () => {
    const error = await withSlowStore('refuse')
    expect(error).toMatchObject({
      code: 'STORE_UNAVAILABLE',
      details: { unit: 'tokens', limit: 2 },
    })
    // The simulated store puts the name of the command in front.
    expect(error.message).toBe(
      "openai: limits[].outage is 'refuse', and the store is unreachable: no reply within 100 ms (commandTimeoutMs); retry in 1 s",
    )
  })

  it("the refusal of the outage rule 'share' has the reason and the unit", async () => {
    const error = await withSlowStore('share')
    expect(error).toMatchObject({
      code: 'VENDOR_LIMITED',
      details: { unit: 'tokens', limit: 2, requested: 1, byOutageRule: true },
    })
    expect(error.message).toMatch(
      /^openai: this pod's share of the limit on tokens in lane default is used up \(limits\[\]\.outage\), because the store is unreachable: no reply within 100 ms \(commandTimeoutMs\); retry in \d/,
    )
  })

  it('the reason has the code of a system error in place of its message, and no address', () => {
    const cause = Object.assign(new Error('connect ECONNREFUSED 10.0.0.5:6379'), {
      code: 'ECONNREFUSED',
    })
    expect(storeProblem(new Error('no connection', { cause }))).toBe('ECONNREFUSED')
    expect(storeProblem(new Error('MOVED 3999 10.0.0.5:6381'))).toBe('MOVED 3999 (address)')
  })
})

describe('text of a refusal after close()', () => {
  it('a call of a closed guard is refused without retryAfterMs, and the text names close()', async () => {
    const { clock, guard, quick } = createGuardPod({})
    await clock.until(guard.close())
    const call = quick()
    await clock.settle()
    const { message, retryAfterMs } = call.error as SpillwayError
    expect(message).toBe('openai: its close() was called, so it starts no more calls')
    expect(retryAfterMs).toBeUndefined()
  })

  it('a guard that is requested after spillway.close() is not called closed itself', async () => {
    const spillway = createSpillway()
    await spillway.close()
    expect(() => spillway.guard('y')).toThrow(
      'spillway.close() was called before guard y was requested',
    )
    expect(() => spillway.jobQueue('z')).toThrow(
      'spillway.close() was called before job queue z was requested',
    )
  })
})

describe('refusals as HTTP answers of a guard', () => {
  const spent: GuardOptions = { limits: [{ unit: 'tokens', limit: 3_000, windowMs: '1m' }] }
  const body = JSON.stringify({ model: 'gpt', messages: [{ role: 'user', content: 'Hi' }] })
  const URL = 'https://vendor.test/v1/chat/completions'
  const page = /reference\/error-codes#vendor-limited$/
  const never = () => new Promise<never>(() => {})

  it('guard.sdk() answers with a message that names the guard, the parts of the estimate, and a URL', async () => {
    const spillway = createSpillway()
    const guard = spillway.guard('openai-x', { ...spent, fetch: { fetch: never } })
    const { fetch } = guard.sdk(class OpenAI {}, { estimate: 'fixed' })
    for (let call = 0; call < 2; call++) void fetch(URL, { method: 'POST', body }).catch(() => {})
    const response = await fetch(URL, { method: 'POST', body })
    const { error } = (await response.json()) as { error: { message: string; url: string } }
    expect(response.status).toBe(429)
    expect(error.message).toMatch(
      /^Spillway guard openai-x: the call needs 1\d{3} tokens \(estimated: \d+ of the prompt \+ 1000 of the answer; set max_tokens or max_output_tokens to lower it\), and \d+ of 3000 are left in lane gpt \(limits\); retry in /,
    )
    expect(error.url).toMatch(page)
    void spillway.close({ graceMs: 0 })
  })

  it('guard.fetch with respond answers with a message that names the guard, and a URL', async () => {
    const { guard, clock } = createGuardPod({
      limits: [{ limit: 1, windowMs: '1m' }],
      fetch: { fetch: async () => new Response('fine'), respond: true },
    })
    await clock.until(guard.fetch(URL))
    const response = await clock.until(guard.fetch(URL))
    const { error } = (await response.json()) as { error: { message: string; url: string } }
    expect(error.message).toMatch(/^Spillway guard openai: the call needs 1 request, /)
    expect(error.url).toMatch(page)
  })
})

it.each([
  [0.04, '0 ms'],
  [12.34, '12.3 ms'],
  [999.96, '1 s'],
  [1_500, '1.5 s'],
  [54_690, '54.7 s'],
  [59_960, '1 min'],
  [61_069.4, '1 min 1 s'],
  [119_700, '2 min'],
  [3_599_900, '1 h'],
  [7_500_000, '2 h 5 min'],
])('%d milliseconds are written as %s', (ms, text) => {
  expect(readableTime(ms)).toBe(text)
})
