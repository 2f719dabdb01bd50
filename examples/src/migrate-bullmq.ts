import { createSpillway } from 'spillway'
import { redisStore } from 'spillway/redis'

const spillway = createSpillway({
  store: redisStore({
    url: process.env.REDIS_URL ?? 'redis://127.0.0.1:6379',
    // Jobs can wait longer for a busy Redis than the users of a web page.
    commandTimeoutMs: '10s',
  }),
})
// The limit holds for jobs and for direct calls of this guard together.
const vendor = spillway.guard('vendor', {
  limits: [{ unit: 'requests', limit: 500, windowMs: '1m' }],
  concurrency: { limit: 2 },
  timeout: { callMs: '30s' },
})
const summaries = spillway.jobQueue<{ page: string }, string>('summaries', {
  guard: vendor,
  attempts: 3,
})
summaries.work(async ({ data }) => `summary of ${data.page}`)

const { id } = await summaries.add({ page: 'home' }, { priority: 'high' })
let job = await summaries.job(id)
while (job !== undefined && job.state !== 'done' && job.state !== 'dead') {
  await new Promise((wake) => setTimeout(wake, 20))
  job = await summaries.job(id)
}
console.log(job?.result ?? job?.error)
await spillway.close()
