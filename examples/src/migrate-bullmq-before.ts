import { Queue, QueueEvents, Worker } from 'bullmq'

const connection = { url: process.env.REDIS_URL ?? 'redis://127.0.0.1:6379' }
const queue = new Queue('summaries', { connection })
const events = new QueueEvents('summaries', { connection })
const worker = new Worker('summaries', async ({ data }) => `summary of ${data.page}`, {
  connection,
  concurrency: 2,
  limiter: { max: 500, duration: 60_000 },
})

// An event of a job that ends before would be missed.
await events.waitUntilReady()
const options = { attempts: 3, priority: 1, removeOnComplete: true }
const job = await queue.add('summarise', { page: 'home' }, options)
console.log(await job.waitUntilFinished(events))

await worker.close()
await Promise.all([events.close(), queue.close()])
