import { createSpillway, onEvent } from 'spillway'
import { createVirtualClock } from 'spillway/testing'

const clock = createVirtualClock()
const spillway = createSpillway({ clock })
const timeout = { callMs: '30s' } as const
const retry = { attempts: 3, baseMs: 100, budget: 1 }
const checkout = spillway.guard('checkout', { retry, timeout })
const payments = spillway.guard('payments', { retry, timeout })

let calls = 0
async function charge() {
  calls++
  throw Object.assign(new Error('down'), { status: 503 })
}

onEvent((event) => {
  if (event.type === 'retry.stopped') console.log(`${event.name} stops: ${event.because}`)
})

const { ok } = await clock.until(checkout.tryRun(() => payments.run(charge)))
console.log({ ok, calls })

await spillway.close()
