import { SpillwayError } from 'spillway'
import { createWorkerBulkhead } from 'spillway/local'

// Needs the package piscina: npm install piscina
const primes = createWorkerBulkhead({
  name: 'primes',
  file: new URL('./prime-worker.js', import.meta.url),
  limit: 2,
  queue: { size: 10 },
  callMs: '2s',
})

// The event loop stays free while the threads are busy.
let ticks = 0
const ticking = setInterval(() => ticks++, 1)

const task = 'countPrimes'
const below = [20_000, 40_000, 60_000]
const counts = await Promise.all(below.map((input) => primes.run<number>(input, { task })))
console.log(counts)
console.log(`the event loop went on: ${ticks > 0}`)

// Too much work for two seconds. The thread is stopped, and its slot is free again.
try {
  await primes.run(1_000_000_000_000, { task })
} catch (error) {
  if (!(error instanceof SpillwayError)) throw error
  console.log(`${error.code}: ${error.message}`)
}
console.log(await primes.run<number>(1_000, { task }))

clearInterval(ticking)
await primes.close()
