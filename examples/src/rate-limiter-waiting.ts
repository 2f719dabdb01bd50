import { createRateLimiter } from 'spillway/local'
import { createVirtualClock } from 'spillway/testing'

const clock = createVirtualClock()
const limiter = createRateLimiter({ name: 'mail', limit: 10, windowMs: '1s', burst: 2, clock })

async function send(mail: string, waitMs: number) {
  const allowed = await limiter.acquireWithin(waitMs)
  console.log(`${String(clock.now()).padStart(3)} ms  ${mail} ${allowed ? 'sent' : 'refused'}`)
}

// The bucket holds two tokens and gets a new one every 100 ms. Calls keep their order; a call that would have to
// wait too long is refused immediately.
const sending = [
  send('first', 500),
  send('second', 500),
  send('third', 500),
  send('fourth', 500),
  send('impatient', 50),
]
await clock.settle()
console.log(`waiting: ${limiter.waiting}, a newcomer would wait ${limiter.retryAfterMs()} ms`)

await clock.until(Promise.all(sending))
limiter.close()
