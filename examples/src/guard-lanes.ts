import { createSpillway } from 'spillway'
import { createVirtualClock, sleep } from 'spillway/testing'

const clock = createVirtualClock()
const spillway = createSpillway({ clock })

const openai = spillway.guard('openai', {
  timeout: { callMs: '30s' },
  queue: { size: 100, timeoutMs: '5s' },
  limits: [
    { unit: 'requests', limit: 60, windowMs: '1m' },
    { unit: 'requests', limit: 100, windowMs: '1m', per: 'vendor' },
  ],
  concurrency: { limit: 10 },
})

/** One model is overloaded: the vendor answers once with 429 and Retry-After. */
let overloaded = true
async function callModel(model: string) {
  await sleep(clock, 100)
  if (model !== 'large' || !overloaded) return 'an answer'
  overloaded = false
  throw Object.assign(new Error('slow down'), { status: 429, headers: { 'retry-after': '2' } })
}

async function ask(lane: string, timeoutMs: number) {
  const what = await openai
    .run(() => callModel(lane), { lane, timeoutMs })
    .catch((error: Error & { code?: string }) => error.code ?? error.message)
  console.log(`${String(Math.round(clock.now())).padStart(5)} ms  ${lane}: ${what}`)
}

await clock.until(ask('large', 10_000))

// The lane is paused on all pods. Calls that cannot wait until it resumes are refused immediately.
const asked = [ask('large', 10_000), ask('large', 1_000), ask('small', 1_000), ask('small', 1_000)]
await clock.until(Promise.all(asked))

await spillway.close()
