import { describe, expect, it } from 'vitest'
import { createRandom } from '../core/random.js'
import { sleep } from '../core/time/sleep.js'
import { createVirtualClock } from '../testing/virtual-clock.js'
import { createThrottle, type ThrottleOptions } from './throttle.js'

function createWorld(options: ThrottleOptions = {}) {
  const clock = createVirtualClock()
  const throttle = createThrottle({ clock, random: createRandom(1), ...options })
  const vendor = { down: false, calls: 0 }
  const ask = () =>
    throttle
      .run(async () => {
        vendor.calls++
        if (vendor.down) throw Object.assign(new Error('down'), { status: 503 })
        return 'an answer'
      })
      .catch((error) => error.code ?? error.message)
  return {
    clock,
    throttle,
    vendor,
    ask,
    async many(count: number) {
      for (let call = 0; call < count; call++) {
        await ask()
        await clock.advance(10)
      }
    },
  }
}

describe('throttle', () => {
  it('throttle refuses nothing while half of the calls are accepted', async () => {
    const { vendor, throttle, many } = createWorld()
    for (let round = 0; round < 50; round++) {
      vendor.down = round % 2 === 1
      await many(1)
    }
    expect(vendor.calls).toBe(50)
    expect(throttle.snapshot()).toMatchObject({ requests: 50, accepts: 25, refusal: 0 })
  })

  it('throttle refuses the fraction (requests − k × accepts) / (requests + 1)', async () => {
    const { vendor, throttle, many } = createWorld()
    await many(100)
    vendor.down = true
    await many(900)
    const { requests, accepts, refusal } = throttle.snapshot()
    expect(requests).toBe(1_000)
    expect(accepts).toBe(100)
    expect(refusal).toBeCloseTo((1_000 - 2 * 100) / 1_001)
    expect(vendor.calls).toBeLessThan(700)
  })

  it('throttle always lets some calls through, so it detects that the vendor has recovered', async () => {
    const { vendor, throttle, many, ask } = createWorld({ windowMs: '10s' })
    vendor.down = true
    await many(3_000)
    const { calls } = vendor
    expect(calls).toBeLessThan(300)
    vendor.down = false
    await many(6_000)
    expect(await ask()).toBe('an answer')
    expect(throttle.snapshot().refusal).toBe(0)
  })

  it('throttle does not count unfinished calls as rejected', async () => {
    const { clock, throttle } = createWorld()
    const calls = Array.from({ length: 100 }, () => throttle.run(() => sleep(clock, 10_000)))
    await clock.until(Promise.all(calls))
    expect(throttle.snapshot()).toEqual({ requests: 100, accepts: 100, refusal: 0 })
  })

  it('throttle counts a 404 response as accepted, because the vendor did its work', async () => {
    const { throttle } = createWorld()
    for (let call = 0; call < 20; call++) {
      await throttle.run(() => ({ status: 404, ok: false, headers: new Headers() }))
    }
    expect(throttle.snapshot()).toMatchObject({ accepts: 20 })
  })

  it('a refusal by the throttle states the numbers behind it', async () => {
    const { vendor, throttle, many } = createWorld({ random: () => 0 })
    vendor.down = true
    await many(10)
    await expect(throttle.run(() => 1)).rejects.toMatchObject({
      code: 'THROTTLED',
      status: 503,
      stage: 'throttle',
      scope: 'local',
      message: 'throttle: throttled here, because the downstream accepted 0 of the last 11 calls',
    })
  })

  it('createThrottle names the invalid option', () => {
    expect(() => createThrottle({ k: 0.5 })).toThrow(
      'throttle.k: must be a number of at least 1, got 0.5',
    )
    expect(() => createThrottle({ window: 5 } as never)).toThrow("did you mean 'windowMs'?")
  })

  it('a throttle refuses nothing after a cold start if 10 % fail at once and answers are slow', async () => {
    const clock = createVirtualClock()
    const throttle = createThrottle({ clock, random: createRandom(1) })
    let [sent, refused] = [0, 0]
    const caller = async () => {
      while (clock.now() < 4_000) {
        const bad = ++sent % 10 === 0
        await throttle
          .run(async () => {
            await sleep(clock, bad ? 5 : 2_000)
            if (bad) throw Object.assign(new Error('down'), { status: 503 })
          })
          .catch((error) => {
            if (error.code === 'THROTTLED') refused++
          })
      }
    }
    await clock.until(Promise.all(Array.from({ length: 200 }, caller)))
    expect(refused).toBe(0)
  })

  it('a throttle refuses calls of a downstream that rejects all of them beside a few that hang', async () => {
    const { clock, throttle, vendor, many } = createWorld()
    for (let call = 0; call < 5; call++)
      void throttle.run(() => sleep(clock, 50_000)).catch(() => {})
    vendor.down = true
    await many(300)
    expect(throttle.snapshot().refusal).toBeGreaterThan(0.9)
  })
})
