import { describe, expect, it, onTestFinished } from 'vitest'
import { createSpillway } from '../spillway.js'

const PROMPT = { method: 'POST', body: JSON.stringify({ model: 'm', messages: [] }) }
const error = (message: string, code: string) => JSON.stringify({ error: { message, code } })
const TOO_LONG = error(
  "This model's maximum context length is 9 tokens.",
  'context_length_exceeded',
)
const TOO_LARGE = error('Request too large for m on tokens per min (TPM).', 'rate_limit_exceeded')
const NO_CREDIT = error('You exceeded your current quota.', 'insufficient_quota')

/** An SDK's fetch that gets these answers, one after the other. */
function start(...answers: [status: number, body: string][]) {
  let sent = 0
  const spillway = createSpillway()
  onTestFinished(() => spillway.close({ graceMs: 0 }))
  const guard = spillway.guard('vendor', {
    timeout: { callMs: '1m' },
    retry: { attempts: 3, baseMs: 1 },
    breaker: { consecutiveFailures: 1, openMs: '1h' },
    limits: [{ limit: 100, windowMs: '1m' }],
    queue: { size: 0 },
    fetch: {
      fetch: async () => {
        const [status, body] = answers[Math.min(sent++, answers.length - 1)] as [number, string]
        return new Response(body, { status })
      },
    },
  })
  const { fetch } = guard.sdk(class OpenAI {})
  const ask = async () => {
    const response = await fetch('http://vendor/v1/chat/completions', PROMPT)
    return [response.status, await response.text()]
  }
  return { ask, guard, sent: () => sent }
}

describe('errors of a vendor behind guard.sdk()', () => {
  it.each([
    ['context-window', 400, TOO_LONG, 'ignored'],
    ['one request above the limit of a minute', 429, TOO_LARGE, 'ignored'],
    ['quota-exhausted', 429, NO_CREDIT, 'throttled'],
    ['invalid-key', 401, '', 'ignored'],
  ] as const)('%s is sent once, and its body is unchanged', async (_, status, body, outcome) => {
    const { ask, guard, sent } = start([status, body])
    expect(await ask()).toEqual([status, body])
    expect(sent()).toBe(1)
    expect(guard.snapshot().outcomes[outcome]).toBe(1)
  })

  it('a 429 about one large request does not pause the lane for others', async () => {
    const { ask } = start([429, TOO_LARGE], [200, '{}'])
    expect((await ask())[0]).toBe(429)
    expect(await ask()).toEqual([200, '{}'])
  })

  it('a 429 about spent credit pauses the lane', async () => {
    const { ask, sent } = start([429, NO_CREDIT], [200, '{}'])
    await ask()
    // Without a queue, a call that would have to wait is refused.
    expect((await ask())[1]).toContain('QUEUE_FULL')
    expect(sent()).toBe(1)
  })

  it('an overloaded vendor counts as a failure and opens the breaker', async () => {
    const { ask } = start([529, error('Overloaded', 'overloaded_error')])
    await ask()
    expect((await ask())[1]).toContain('CIRCUIT_OPEN')
  })

  it('a long error body is passed on whole', async () => {
    const body = error('x'.repeat(300_000), 'context_length_exceeded')
    expect(await start([400, body]).ask()).toEqual([400, body])
  })
})
