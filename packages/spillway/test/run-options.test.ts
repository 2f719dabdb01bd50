import { describe, expect, it, vi } from 'vitest'
import { type Duration, OptionsError } from '../src/core/options/checks.js'
import { createSpillway } from '../src/guard/spillway.js'
import { createVirtualClock } from '../src/testing/virtual-clock.js'

const wrong = { idempotnet: true } as never

describe('options of a call', () => {
  it('an unknown run option rejects the call before it starts, with a suggestion', async () => {
    const guard = createSpillway().guard('g', {})
    let started = 0
    const fn = () => ++started
    await expect(guard.run(fn, wrong)).rejects.toThrow(
      "run.idempotnet: unknown option; did you mean 'idempotent'?",
    )
    await expect(guard.run(fn, wrong)).rejects.toBeInstanceOf(OptionsError)
    await expect(guard.runDegradable(fn, wrong)).rejects.toBeInstanceOf(OptionsError)
    expect(await guard.tryRun(fn, wrong)).toMatchObject({ ok: false })
    expect(started).toBe(0)
  })

  it('an unknown run option is reported with the known ones if none is similar', async () => {
    const guard = createSpillway().guard('g', {})
    const zzz = guard.run(() => 1, { zzzzzzzz: 1 } as never)
    await expect(zzz).rejects.toThrow(/^run\.zzzzzzzz: unknown option; known: user, tier, ip/)
  })

  it('an unknown option of fetchFor is an error when the fetch is created', () => {
    const guard = createSpillway().guard('g', {})
    expect(() => guard.fetchFor(wrong)).toThrow("did you mean 'idempotent'?")
  })

  it('an unknown option that describe returns rejects the request', async () => {
    const guard = createSpillway().guard('g', {
      fetch: { fetch: async () => new Response('ok'), describe: () => ({ lan: 'a' }) as never },
    })
    await expect(guard.fetch('http://localhost/')).rejects.toThrow(
      "run.lan: unknown option; did you mean 'lane'?",
    )
  })

  it.each([
    [{ timeoutMs: -1 }, 'timeoutMs: must be a duration of at least 0 ms'],
    [{ timeoutMs: Number.NaN }, 'timeoutMs: must be a duration of at least 0 ms'],
    [{ timeoutMs: true }, 'timeoutMs: must be a duration of at least 0 ms'],
    [{ needsMs: -1 }, 'needsMs: must be a number of at least 0, got -1'],
    [{ needsMs: 'a' }, 'needsMs: must be a number of at least 0, got "a"'],
    [{ callerAttempt: 0 }, 'callerAttempt: must be a positive integer, got 0'],
    [{ lane: '' }, 'lane: must be a non-empty string, got ""'],
    [{ lane: 5 }, 'lane: must be a non-empty string, got 5'],
    [{ priority: 'urgent' }, 'priority: '],
    [{ signal: {} }, 'signal: '],
  ])('the invalid run option %j rejects the call with its name', async (options, text) => {
    const guard = createSpillway().guard('g', {})
    const fn = vi.fn()
    const error = await guard.run(fn, options as never).catch((reason: unknown) => reason)
    expect(error).toBeInstanceOf(OptionsError)
    expect((error as Error).message.startsWith(text)).toBe(true)
    expect(fn).not.toHaveBeenCalled()
  })

  it.each([
    [250, 250],
    ['2s', 2_000],
  ])('a call with the timeout %j ends after %d ms', async (timeoutMs, ms) => {
    const clock = createVirtualClock()
    const guard = createSpillway({ clock }).guard('g', {})
    const call = guard
      .run(() => new Promise(() => {}), { timeoutMs: timeoutMs as Duration })
      .catch(({ code }) => code)
    expect(await clock.until(call)).toBe('DEADLINE_EXCEEDED')
    expect(clock.now()).toBe(ms)
  })

  it('a timeout of 0 refuses the call, and a call may need no time', async () => {
    const guard = createSpillway().guard('g', {})
    await expect(guard.run(() => 1, { timeoutMs: 0 })).rejects.toMatchObject({
      code: 'DEADLINE_EXCEEDED',
    })
    expect(await guard.run(() => 1, { timeoutMs: 1_000, needsMs: 0 })).toBe(1)
  })

  it('an aborted signal rejects the call with its reason before other options are read', async () => {
    const guard = createSpillway().guard('g', {})
    const reason = new Error('left')
    const call = guard.run(() => 1, { signal: AbortSignal.abort(reason), lane: '' })
    await expect(call).rejects.toBe(reason)
  })

  it('options that are undefined, and properties of a prototype, are accepted', async () => {
    const guard = createSpillway().guard('g', {})
    const inherited = Object.create({ colour: 'red' }, { user: { value: 'ann', enumerable: true } })
    expect(await guard.run(() => 1, { user: undefined, lane: undefined })).toBe(1)
    expect(await guard.run(() => 2, inherited)).toBe(2)
  })
})
