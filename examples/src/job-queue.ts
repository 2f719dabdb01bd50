import { createSpillway } from 'spillway'

const spillway = createSpillway() // with a Redis store, all pods share the queue
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
  attempts: 3, // including the first one
  keep: 0, // no other calls here; by default jobs leave 0.05 of each limit to calls
})

// Any pod can add jobs …
const nightly = await summaries.add({ document: 1 }, { priority: 'low', tenant: 'acme' })
const urgent = await summaries.add({ document: 2 }, { priority: 'high', key: 'document-2' })
const again = await summaries.add({ document: 2 }, { priority: 'high', key: 'document-2' })
console.log(
  `the same key, the same job: ${again.id === urgent.id}, ${again.fresh ? 'new' : 'known'}`,
)

// … and any pod can work on them. A job comes with its permit, so the handler never waits for one.
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

await worker.close() // running jobs finish; the others return to the queue
await spillway.close()
