import { createTimeout } from 'spillway/local'
import { createVirtualClock, sleep } from 'spillway/testing'

const clock = createVirtualClock()
const timeout = createTimeout({ callMs: '5s', adaptive: { margin: 0.5 }, clock })

/** Makes calls of this duration, then prints the timeout of the next call. */
async function calls(count: number, tookMs: number) {
  for (let call = 0; call < count; call++) {
    await clock.until(timeout.run(() => sleep(clock, tookMs)))
  }
  await clock.advance(250)
  const limitMs = Math.round(timeout.callMs ?? 0)
  console.log(`after ${count} × ${tookMs} ms the next call gets ${limitMs} ms`)
}

await calls(10, 200)
await calls(10, 200)
await calls(30, 280)
await clock.advance(60_000)
await calls(1, 200)
