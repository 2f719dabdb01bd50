import { describe, expect, it } from 'vitest'
import { currentDeadline } from '../core/deadline.js'
import { noteRetried } from '../core/hops.js'
import { createVirtualClock } from '../testing/virtual-clock.js'
import { createHops } from './hops.js'

/** As much of an answer as is looked at. */
function createAnswer(headersSent = false) {
  const headers: Record<string, unknown> = {}
  const setHeader = (name: string, value: unknown) => {
    if (headersSent) throw new Error('too late')
    headers[name] = value
  }
  return { headersSent, headers, setHeader: setHeader as never }
}

describe('hops', () => {
  it('gives what the handler returns, and its deadline to what it calls', async () => {
    const clock = createVirtualClock()
    const hops = createHops({ clock })
    const left = await hops.run({ 'spillway-deadline-ms': '250' }, async () => {
      await Promise.resolve()
      return currentDeadline()?.remainingMs()
    })
    expect(left).toBe(250)
  })

  it('tells the caller that something was tried again, while it can', () => {
    const hops = createHops()
    const early = createAnswer()
    hops.handle({ headers: {} }, early, noteRetried)
    expect(early.headers).toEqual({ 'spillway-retried': '1' })
    const late = createAnswer(true)
    expect(() => hops.handle({ headers: {} }, late, noteRetried)).not.toThrow()
  })

  it('the same by hand, for a request from anywhere', () => {
    const hops = createHops({ headers: { retried: 'X-Tried' } })
    const seen = hops.run({}, () => {
      const before = hops.answerHeaders()
      noteRetried()
      return [before, hops.answerHeaders()]
    })
    expect(seen).toEqual([{}, { 'x-tried': '1' }])
    expect(hops.answerHeaders()).toEqual({})
  })

  it('two requests at once do not see each other', async () => {
    const clock = createVirtualClock()
    const hops = createHops({ clock })
    const ask = (ms: number) =>
      hops.run({ 'spillway-deadline-ms': String(ms) }, async () => {
        await Promise.resolve()
        return currentDeadline()?.remainingMs()
      })
    expect(await Promise.all([ask(100), ask(200)])).toEqual([100, 200])
  })
})
