import { describe, expect, it } from 'vitest'
import { OptionsError } from '../src/core/options/checks.js'
import { createSpillway } from '../src/guard/spillway.js'

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

  it('options that are undefined, and properties of a prototype, are accepted', async () => {
    const guard = createSpillway().guard('g', {})
    const inherited = Object.create({ colour: 'red' }, { user: { value: 'ann', enumerable: true } })
    expect(await guard.run(() => 1, { user: undefined, lane: undefined })).toBe(1)
    expect(await guard.run(() => 2, inherited)).toBe(2)
  })
})
