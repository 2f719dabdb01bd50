import { RateLimiterMemory, RateLimiterRes } from 'rate-limiter-flexible'

const limiter = new RateLimiterMemory({ points: 2, duration: 60 })

for (let request = 1; request <= 3; request++) {
  try {
    await limiter.consume('ann')
    console.log(`${request}: allowed`)
  } catch (rejected) {
    if (!(rejected instanceof RateLimiterRes)) throw rejected
    console.log(`${request}: 429, retry after a wait: ${rejected.msBeforeNext > 0}`)
  }
}
