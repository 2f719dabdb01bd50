import { describe, expect, it } from 'vitest'
import { createVirtualClock } from '../testing/virtual-clock.js'
import { LazyAlarm } from './lazy-alarm.js'

function setup() {
  const clock = createVirtualClock()
  const alarm = new LazyAlarm(clock)
  const rung: number[] = []
  return { clock, alarm, rung, ring: () => rung.push(clock.now()) }
}

describe('a lazy alarm', () => {
  it('goes off when it was last set to, however often it was set', async () => {
    const { clock, alarm, rung, ring } = setup()
    for (let step = 0; step < 50; step++) {
      alarm.set(100, ring)
      await clock.advance(30)
    }
    await clock.advance(1_000)
    expect(rung).toEqual([49 * 30 + 100])
    // Not one timer for each time it was set.
    expect(clock.fired).toBeLessThan(25)
  })

  it('goes off earlier when it is set to an earlier time', async () => {
    const { clock, alarm, rung, ring } = setup()
    alarm.set(1_000, ring)
    alarm.set(10, ring)
    await clock.advance(2_000)
    expect(rung).toEqual([10])
  })

  it('does not go off once cleared, and leaves nothing behind once closed', async () => {
    const { clock, alarm, rung, ring } = setup()
    alarm.set(10, ring)
    alarm.clear()
    await clock.advance(100)
    alarm.set(10, ring)
    alarm.close()
    const { fired } = clock
    await clock.advance(100)
    expect(rung).toEqual([])
    expect(clock.fired).toBe(fired)
  })
})
