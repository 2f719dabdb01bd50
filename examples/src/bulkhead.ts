import { setTimeout as sleep } from 'node:timers/promises'
import { SpillwayError } from 'spillway'
import { createBulkhead } from 'spillway/local'

// Two searches at once; two more may wait for a slot, 100 ms at most.
const search = createBulkhead({ name: 'search', limit: 2, queue: { size: 2, timeoutMs: 100 } })

async function find(term: string, tookMs: number) {
  try {
    console.log(await search.run(() => sleep(tookMs, `${term}: found`)))
  } catch (error) {
    if (!(error instanceof SpillwayError)) throw error
    console.log(`${term}: ${error.code}: ${error.message}`)
  }
}

const searches = [
  find('apples', 20), // takes a slot
  find('pears', 300), // takes the other one
  find('plums', 300), // waits, and gets the slot of the first call
  find('figs', 20), // waits, and times out in the queue
  find('dates', 20), // finds the queue full
]
console.log(search.snapshot())

await Promise.all(searches)
await search.close()
