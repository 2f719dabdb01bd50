import { createSpillway, type Priority, type RunOptions, SpillwayError } from 'spillway'
import { createVirtualClock, sleep } from 'spillway/testing'

const clock = createVirtualClock()
const spillway = createSpillway({ clock })

// One call at a time, a tenth of a second each.
const reports = spillway.guard('reports', {
  timeout: { callMs: '30s' },
  queue: { size: 4, timeoutMs: '10s' },
  concurrency: { limit: 1 },
})

async function order(name: string, options: RunOptions) {
  const at = () => `${String(Math.round(clock.now())).padStart(3)} ms`
  try {
    await reports.run(() => {
      console.log(`${at()}  ${name} starts`)
      return sleep(clock, 100)
    }, options)
  } catch (error) {
    if (!(error instanceof SpillwayError)) throw error
    console.log(`${at()}  ${name}: ${error.code}: ${error.message}`)
  }
}

const priorities: Priority[] = ['normal', 'low', 'normal', 'high', 'low']
const all = priorities.map((priority, index) => order(`${priority} ${index + 1}`, { priority }))

// The queue is full: the newest call of the lowest priority is evicted.
all.push(order('critical 6', { priority: 'critical' }))
// No queued call has a lower priority, so this one is refused.
all.push(order('low 7', { priority: 'low' }))

// Its turn would come in 350 ms, after its deadline.
await clock.advance(150)
all.push(order('hurried 8', { timeoutMs: 80 }))

await clock.until(Promise.all(all))
await spillway.close()
