import { describe, expect, it } from 'vitest'
import { fc } from '../../../test/fast-check.js'
import { SpillwayError } from '../../core/errors.js'
import { TimedCall } from '../../local/timeout/timed-call.js'
import { createLocalTimeout } from '../../local/timeout/timeout.js'
import { createVirtualClock } from '../../testing/virtual-clock.js'
import { bodyLimits } from './body-limits.js'
import { BodyWatch } from './body-watch.js'

const FIRST_BYTE_MS = 300
const IDLE_MS = 100
const UNREAD_MS = 250

/** A body whose headers arrived after `headersMs`. */
async function begin(headersMs: number, limits: { firstByteMs?: number; idleMs?: number }) {
  const clock = createVirtualClock()
  const timeout = createLocalTimeout({ name: 'vendor', callMs: 10_000, clock, ...limits })
  const call = new TimedCall<object>(timeout, clock.now(), undefined, undefined)
  const answer = new Promise<object>((resolve) => clock.schedule(headersMs, () => resolve({})))
  const ends: { how: string; kind: unknown; atMs: number }[] = []
  let watch: BodyWatch | undefined
  const begun = new Promise<void>((resolve) => {
    const listener = {
      onFirstChunk: () => {},
      onChunk: () => {},
      onEnd: (how: string, error: unknown) => {
        const kind = error instanceof SpillwayError ? error.details.kind : undefined
        ends.push({ how, kind, atMs: clock.now() })
      },
    }
    const onValue = () => {
      watch = new BodyWatch(bodyLimits(timeout, UNREAD_MS), call as never, false, listener)
      watch.begin({ breakOff: () => {} })
      resolve()
    }
    const goesOn = () => true
    call.start(() => answer, call, { onValue, onError: () => {} }, goesOn)
  })
  await clock.advance(headersMs)
  await begun
  return { clock, watch: watch as BodyWatch, ends }
}

const LIMITS = { firstByteMs: FIRST_BYTE_MS, idleMs: IDLE_MS }

describe('body timeout', () => {
  it('the body timer is set only a few times for a thousand chunks', async () => {
    const { clock, watch, ends } = await begin(1, LIMITS)
    const before = clock.fired
    for (let chunk = 0; chunk < 1_000; chunk++) {
      watch.reading()
      await clock.advance(1)
      watch.chunk('x')
    }
    expect(clock.fired - before).toBeLessThan(20)
    watch.reading()
    await clock.advance(99)
    expect(ends).toEqual([])
    await clock.advance(1)
    expect(ends).toEqual([{ how: 'stalled', kind: 'idle', atMs: 1_101 }])
  })

  it('the time until the headers counts towards firstByteMs', async () => {
    const { clock, watch, ends } = await begin(280, LIMITS)
    await clock.advance(50)
    watch.reading()
    await clock.advance(19)
    expect(ends).toEqual([])
    await clock.advance(1)
    expect(ends).toEqual([{ how: 'stalled', kind: 'firstByte', atMs: 350 }])
  })

  it('body timeout fires exactly when the expected chunk is overdue', async () => {
    const step = fc.record({
      what: fc.constantFrom('reading', 'chunk', 'resting'),
      afterMs: fc.integer({ min: 0, max: 120 }),
    })
    const limits = fc.constantFrom({ firstByteMs: 300 }, { idleMs: 100 }, LIMITS, { idleMs: 400 })
    const headersMs = fc.integer({ min: 0, max: 250 })
    const claim = async (steps: { what: string; afterMs: number }[], some: object, ms: number) => {
      const { firstByteMs, idleMs = Number.POSITIVE_INFINITY } = some as typeof LIMITS
      const { clock, watch, ends } = await begin(ms, some)
      let begun = false
      let due = { atMs: clock.now() + UNREAD_MS, kind: 'unread' }
      for (const { what, afterMs } of steps) {
        await clock.advance(afterMs)
        if (clock.now() >= due.atMs) break
        watch[what as 'reading' | 'resting']()
        if (what === 'chunk') begun = true
        const silence =
          begun || firstByteMs === undefined
            ? { atMs: clock.now() + idleMs, kind: 'idle' }
            : { atMs: clock.now() + firstByteMs - ms, kind: 'firstByte' }
        due = what === 'reading' ? silence : { atMs: clock.now() + UNREAD_MS, kind: 'unread' }
      }
      await clock.advance(1_000)
      const how = due.kind === 'unread' ? 'abandoned' : 'stalled'
      expect(ends).toEqual(due.atMs === Number.POSITIVE_INFINITY ? [] : [{ how, ...due }])
    }
    const property = fc.asyncProperty(fc.array(step, { maxLength: 12 }), limits, headersMs, claim)
    await fc.assert(property, { numRuns: 200 })
  })
})
