import { describe, expect, it } from 'vitest'
import { noteRetried } from '../core/hops.js'
import { currentDeadline } from '../core/time/deadline.js'
import { createVirtualClock } from '../testing/virtual-clock.js'
import { createHops } from './hops.js'

/** The part of a response that is used. */
function createAnswer(headersSent = false) {
  const headers: Record<string, unknown> = {}
  const setHeader = (name: string, value: unknown) => {
    if (headersSent) throw new Error('too late')
    headers[name] = value
  }
  return { headersSent, headers, setHeader: setHeader as never }
}

describe('createHops', () => {
  it("run() returns the handler's value and passes the deadline to nested calls", async () => {
    const clock = createVirtualClock()
    const hops = createHops({ clock })
    const left = await hops.run({ 'spillway-deadline-ms': '250' }, async () => {
      await Promise.resolve()
      return currentDeadline()?.remainingMs()
    })
    expect(left).toBe(250)
  })

  it('handle() sets the retried header as long as headers are not sent', () => {
    const hops = createHops()
    const early = createAnswer()
    hops.handle({ headers: {} }, early, noteRetried)
    expect(early.headers).toEqual({ 'spillway-retried': '1' })
    const late = createAnswer(true)
    expect(() => hops.handle({ headers: {} }, late, noteRetried)).not.toThrow()
  })

  it('answerHeaders() gives the retried header for manual use', () => {
    const hops = createHops({ headers: { retried: 'X-Tried' } })
    const seen = hops.run({}, () => {
      const before = hops.answerHeaders()
      noteRetried()
      return [before, hops.answerHeaders()]
    })
    expect(seen).toEqual([{}, { 'x-tried': '1' }])
    expect(hops.answerHeaders()).toEqual({})
  })

  it("concurrent requests do not see each other's deadline", async () => {
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
