import { createAdaptiveLimit } from 'spillway/local'
import { createVirtualClock } from 'spillway/testing'

const clock = createVirtualClock()
const limit = createAdaptiveLimit({ adaptive: 'aimd', initial: 10, latencyMs: '150ms', clock })

/** Fills all slots once with calls of this duration. */
async function round(latencyMs: number) {
  const inFlight = limit.limit
  await clock.advance(latencyMs)
  for (let call = 0; call < inFlight; call++) {
    limit.record({ latencyMs, inFlight, outcome: 'success' })
  }
}

for (let each = 0; each < 40; each++) await round(100)
console.log(`after forty good rounds: ${limit.limit}`)
for (let each = 0; each < 12; each++) await round(300)
console.log(`after twelve slow ones: ${limit.limit}`)
