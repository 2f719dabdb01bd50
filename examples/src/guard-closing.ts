import { createSpillway } from 'spillway'
import { createVirtualClock, sleep } from 'spillway/testing'

const clock = createVirtualClock()
const spillway = createSpillway({ clock })
const vendor = spillway.guard('vendor', {
  queue: { size: 10 },
  concurrency: { limit: 2 },
  timeout: { callMs: '1m' },
})

function start(name: string, takesMs: number) {
  const call = vendor.run(({ signal }) => sleep(clock, takesMs, signal))
  const say = (what: string) => console.log(`${Math.round(clock.now())} ms: ${name} ${what}`)
  return call.then(
    () => say('is done'),
    (error) => say(`ends with ${error.code}`),
  )
}

const calls = [start('a short call', 2_000), start('a long call', 60_000), start('a third', 100)]
await clock.advance(1_000)

// As on SIGTERM: waiting calls are refused, running calls get five more seconds.
const closed = spillway.close({ graceMs: '5s' })
calls.push(start('a late call', 100))
await clock.until(closed)
await Promise.all(calls)
console.log(`closed after ${Math.round(clock.now())} ms, timers left: ${clock.pending}`)
