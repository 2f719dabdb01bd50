import { describe, expect, it } from 'vitest'
import { gathering } from '../core/gathering.js'
import { createVirtualClock } from './virtual-clock.js'

/** Timers that each put work off, in promises and to the next tick, again and again. */
async function history(quick: boolean): Promise<string[]> {
  const clock = createVirtualClock({ quick })
  const log: string[] = []
  for (let number = 0; number < 600; number++) {
    const hops = number % 7
    clock.schedule(Math.floor(number / 2), () => {
      log.push(`${number} fires`)
      let left = hops
      const next = gathering(() => {
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

describe('a quick clock', () => {
  it('fires the next timer when all is quiet, however deep the library has put things off', async () => {
    const log = await history(true)
    expect(log).toEqual(await history(false))
    for (const [index, line] of log.entries()) {
      if (line.endsWith('fires') && index > 0) expect(log[index - 1]).toMatch(/hop 0$/)
    }
  })
})
