import { createHedge } from 'spillway/local'
import { createVirtualClock, sleep } from 'spillway/testing'

const clock = createVirtualClock()
const hedge = createHedge({ delayMs: 100, budget: 0.1, clock })

const replicas = { one: 2_000, two: 30 }
async function read(replica: keyof typeof replicas, signal: AbortSignal) {
  try {
    await sleep(clock, replicas[replica], signal)
    return `from replica ${replica}`
  } catch (error) {
    console.log(`replica ${replica} is let go: ${(error as Error).message}`)
    throw error
  }
}

// The second attempt goes somewhere else.
const answer = hedge.run(({ signal, hedge: second }) => read(second ? 'two' : 'one', signal))
console.log(await clock.until(answer), `after ${clock.now()} ms`)
