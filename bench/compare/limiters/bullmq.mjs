// https://docs.bullmq.io/guide/rate-limiting: `limiter` of the workers holds for all workers of a queue.
// https://docs.bullmq.io/patterns/failing-fast-when-redis-is-down: `enableOfflineQueue: false` where jobs are added.
// https://docs.bullmq.io/guide/going-to-production: jobs that are done are removed.
import { Queue, QueueEvents, Worker } from 'bullmq'

export async function createLimiter({ redis, name, limit, windowMs, work }) {
  const connection = { host: redis.host, port: redis.port }
  const worker = new Worker(name, work, {
    connection,
    concurrency: limit,
    limiter: { max: limit, duration: windowMs },
  })
  const events = new QueueEvents(name, { connection })
  const queue = new Queue(name, {
    connection: { ...connection, enableOfflineQueue: false },
    defaultJobOptions: { removeOnComplete: { count: 1_000 }, removeOnFail: { count: 1_000 } },
  })
  for (const each of [worker, events, queue]) each.on('error', () => {})
  await Promise.all([worker.waitUntilReady(), events.waitUntilReady(), queue.waitUntilReady()])
  return async () => {
    const job = await queue.add('call', {})
    await job.waitUntilFinished(events)
  }
}
