import { createSpillway } from 'spillway'

const spillway = createSpillway() // with a Redis store, the queue is one for all pods
const vendor = spillway.guard('vendor', {
  timeout: { callMs: '30s' },
  limits: [{ limit: 600, windowMs: '1m' }],
  breaker: { consecutiveFailures: 5 },
})

interface Page {
  document: number
}

const summaries = spillway.jobQueue<Page, string>('summaries', {
  guard: vendor,
  attempts: 3, // the first one included
  keep: 0, // nobody else calls this vendor here; 0.05 of each limit is left to calls by default
})

// Anywhere in the fleet: jobs go in …
const nightly = await summaries.add({ document: 1 }, { priority: 'low', tenant: 'acme' })
const urgent = await summaries.add({ document: 2 }, { priority: 'high', key: 'document-2' })
const again = await summaries.add({ document: 2 }, { priority: 'high', key: 'document-2' })
console.log(
  `the same key, the same job: ${again.id === urgent.id}, ${again.fresh ? 'new' : 'known'}`,
)

// … and pods with time on their hands work on them. A job comes with its permit: this never waits.
const finished: string[] = []
const worker = summaries.work(
  async ({ data, attempt }) => {
    if (data.document === 1 && attempt === 1) throw new Error('the vendor hung up')
    finished.push(`document ${data.document}, attempt ${attempt}`)
    return `summary of ${data.document}`
  },
  { concurrency: 20 },
)

while ((await summaries.counts()).done < 2) await new Promise((wake) => setTimeout(wake, 20))
console.log(finished.join('\n'))
console.log((await summaries.job(nightly.id))?.result)

await worker.close() // lets what runs finish; what does not goes back, untried
await spillway.close()
