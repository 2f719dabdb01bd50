import { createThrottle } from 'spillway/local'
import { createRandom, createVirtualClock } from 'spillway/testing'

const clock = createVirtualClock()
const throttle = createThrottle({ k: 2, windowMs: '10s', clock, random: createRandom(1) })

let up = true
let sent = 0
async function callVendor() {
  sent++
  if (!up) throw Object.assign(new Error('too much'), { status: 429 })
}

async function seconds(count: number) {
  const before = sent
  for (let call = 0; call < count * 10; call++) {
    await throttle.run(callVendor).catch(() => {})
    await clock.advance(100)
  }
  const { refusal } = throttle.snapshot()
  console.log(`${sent - before} of ${count * 10} calls sent, now refusing ${refusal.toFixed(2)}`)
}

await seconds(10)
up = false
await seconds(10)
await seconds(10)
up = true
await seconds(90)
await seconds(10)
