import { createBackpressureQueue } from 'spillway/local'
import { createVirtualClock, sleep } from 'spillway/testing'

const clock = createVirtualClock()
const queue = createBackpressureQueue<number>({ size: 10, highWatermark: 8, lowWatermark: 2 })

async function produce() {
  for (let item = 1; item <= 12; item++) {
    const wait = queue.put(item)
    if (wait === undefined) continue
    console.log(`${clock.now()} ms: the producer waits with item ${item}`)
    await wait
    console.log(`${clock.now()} ms: and goes on, ${queue.length} are inside`)
  }
  queue.close()
}

async function consume() {
  const received: number[] = []
  for await (const item of queue) {
    await sleep(clock, 10)
    received.push(item)
  }
  console.log(`${clock.now()} ms: received ${received.join(' ')}`)
}

await clock.until(Promise.all([produce(), consume()]))
