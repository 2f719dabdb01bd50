import { createSpillway, SpillwayError } from 'spillway'
import { createVirtualClock, sleep } from 'spillway/testing'

const clock = createVirtualClock()
const spillway = createSpillway({ clock, random: () => 0.5 })

const weather = spillway.guard('weather', {
  queue: { size: 2, timeoutMs: '1s' },
  breaker: { consecutiveFailures: 3, openMs: '10s' },
  concurrency: { limit: 3 },
  timeout: { callMs: '500ms' },
  retry: { attempts: 2, baseMs: 100 },
})

/** Answers with each status in turn; 0 is silence. */
function vendor(...statuses: number[]) {
  return async ({ attempt, signal }: { attempt: number; signal: AbortSignal }) => {
    const status = statuses.shift() ?? 200
    await sleep(clock, status === 0 ? 60_000 : 100, signal)
    if (status !== 200) throw Object.assign(new Error(`status ${status}`), { status })
    return `sunny, at attempt ${attempt}`
  }
}

async function ask(title: string, fn: ReturnType<typeof vendor>) {
  const startMs = clock.now()
  const result = await clock.until(weather.tryRun(fn))
  const tookMs = Math.round(clock.now() - startMs)
  console.log(`${title}: ${result.ok ? result.value : result.error} (${tookMs} ms)`)
}

await ask('all is well', vendor(200))
await ask('a blip', vendor(503, 200))
await ask('no answer, then one', vendor(0, 200))
await ask('a wrong request', vendor(404))

// Three calls run, two wait in the queue, and the sixth is refused.
const six = Array.from({ length: 6 }, () => weather.tryRun(vendor(200)))
const answers = await clock.until(Promise.all(six))
console.log('six at once:', answers.map(({ ok }) => (ok ? 'answered' : 'refused')).join(', '))

await ask('down', vendor(503, 503))
await ask('still down', vendor(503, 503))

// The breaker has opened. The refusal of the next call as JSON:
const refused = await weather.tryRun(vendor(200))
if (!refused.ok && refused.error instanceof SpillwayError) {
  console.log(JSON.stringify(refused.error, null, 2))
}

await clock.advance(10_000)
await ask('ten seconds later', vendor(200))
console.log(weather.snapshot().refused)

await spillway.close()
