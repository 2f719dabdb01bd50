import { createRateLimiter } from 'spillway/local'
import { createVirtualClock } from 'spillway/testing'

const ALGORITHMS = ['token-bucket', 'leaky-bucket', 'fixed-window', 'sliding-window'] as const
const TIMES = [750, 1_000, 1_250, 1_500, 1_750, 2_000]

// Eight per second. A caller takes all free permits every 250 ms.
console.log('at ms'.padEnd(14), ...TIMES.map((ms) => String(ms).padStart(5)))
for (const algorithm of ALGORITHMS) {
  const clock = createVirtualClock({ startMs: 750, wallMs: 750 })
  const limiter = createRateLimiter({ limit: 8, windowMs: '1s', algorithm, clock })
  const taken = []
  for (const _ of TIMES) {
    let count = 0
    while (limiter.tryAcquire()) count++
    taken.push(String(count).padStart(5))
    await clock.advance(250)
  }
  console.log(algorithm.padEnd(14), ...taken)
}
