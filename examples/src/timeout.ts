import { setTimeout as sleep } from 'node:timers/promises'
import { SpillwayError } from 'spillway'
import { createBulkhead, createTimeout } from 'spillway/local'

const timeout = createTimeout({ name: 'weather', callMs: 50 })
const slots = createBulkhead({ name: 'weather', limit: 1 })

async function report(forecast: Promise<string>) {
  try {
    console.log(await forecast)
  } catch (error) {
    if (!(error instanceof SpillwayError)) throw error
    console.log(`${error.code}: ${error.message}`)
  }
}

await report(timeout.run(() => sleep(5, 'sunny')))

// This call uses its signal: the work ends with the timeout, and its slot is free.
await report(slots.run(() => timeout.run(({ signal }) => sleep(200, 'rain', { signal }))))
await sleep(10)
console.log(`slots in use: ${slots.active}`)

// This one ignores it. The call fails at the same time, but its slot stays in use until the work has ended.
await report(slots.run(() => timeout.run(() => sleep(200, 'hail'))))
console.log(`slots in use: ${slots.active}`)
await sleep(200)
console.log(`slots in use: ${slots.active}`)
