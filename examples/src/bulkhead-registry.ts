import { setTimeout as sleep } from 'node:timers/promises'
import { createBulkheadRegistry } from 'spillway/local'

// Defaults for downstreams without options of their own.
const bulkheads = createBulkheadRegistry({ limit: 10, queue: { size: 20 } })

const payments = bulkheads.get('payments', { limit: 2 })
const search = bulkheads.get('search')

// A slow downstream fills only its own bulkhead.
const slow = Array.from({ length: 5 }, () => payments.run(() => sleep(50)))
console.log(await search.run(() => 'search is not affected'))

for (const { name, active, limit, waiting } of bulkheads.snapshot()) {
  console.log(`${name}: ${active} of ${limit} slots in use, ${waiting} waiting`)
}
console.log(`one instance per name: ${bulkheads.get('payments') === payments}`)

await Promise.all(slow)
await bulkheads.close()
