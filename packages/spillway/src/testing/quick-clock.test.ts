import { describe, expect, it } from 'vitest'
import { nextTickBatch } from '../core/time/next-tick-batch.js'
import { createVirtualClock } from './virtual-clock.js'

/** Timers that defer work repeatedly through promises and ticks. */
async function history(quick: boolean): Promise<string[]> {
  const clock = createVirtualClock({ quick })
  const log: string[] = []
  for (let number = 0; number < 600; number++) {
    const hops = number % 7
    clock.schedule(Math.floor(number / 2), () => {
      log.push(`${number} fires`)
      let left = hops
      const next = nextTickBatch(() => {
        void Promise.resolve()
          .then(() => {})
          .then(() => {
            log.push(`${number} hop ${left}`)
            if (left-- > 0) next()
          })
      })
      void Promise.resolve().then(next)
    })
  }
  await clock.advance(1_000)
  return log
}

describe('quick clock', () => {
  it('quick clock fires the next timer only after all deferred work has run', async () => {
    const log = await history(true)
    expect(log).toEqual(await history(false))
    expect(log.filter((line) => line.endsWith('fires'))).toHaveLength(600)
    for (const [index, line] of log.entries()) {
      if (line.endsWith('fires') && index > 0) expect(log[index - 1]).toMatch(/hop 0$/)
    }
  })
})
