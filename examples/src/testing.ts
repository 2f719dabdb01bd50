import assert from 'node:assert/strict'
import { type Clock, SpillwayError } from 'spillway'
import { createRetry, createTimeout } from 'spillway/local'
import { createRandom, createVirtualClock, type Random } from 'spillway/testing'

// The code under test takes its clock and random numbers as options. Production passes neither.
interface Tools {
  clock?: Clock
  random?: Random
}

function createGreeter(ask: () => Promise<string>, { clock, random }: Tools = {}) {
  const time = clock && { clock }
  const retry = createRetry({ attempts: 3, baseMs: '1s', ...time, ...(random && { random }) })
  const timeout = createTimeout({ name: 'greeter', callMs: '30s', ...time })
  return { greet: () => retry.run(() => timeout.run(ask)) }
}

// Three timeouts of 30 s each, without real waiting.
const clock = createVirtualClock()
const random = createRandom(7)
let asked = 0
const greeter = createGreeter(
  () => {
    asked++
    return new Promise(() => {})
  },
  { clock, random },
)

const greeting = greeter.greet()
await clock.advance(29_999)
assert.equal(asked, 1)

await assert.rejects(
  () => clock.until(greeting),
  (error) => error instanceof SpillwayError && error.code === 'CALL_TIMEOUT',
)
assert.equal(asked, 3)
assert.equal(clock.pending, 0, 'a timer was left behind')
console.log(`passed after ${Math.round(clock.now())} virtual milliseconds`)
