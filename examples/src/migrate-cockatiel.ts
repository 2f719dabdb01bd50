import { createSpillway } from 'spillway'

let calls = 0
async function search(signal: AbortSignal): Promise<string> {
  signal.throwIfAborted()
  calls++
  if (calls < 3) throw new Error('503 from the search API')
  return 'found'
}

const spillway = createSpillway()
const guard = spillway.guard('search', {
  retry: { attempts: 3, baseMs: 10 }, // counts the first attempt, too
  breaker: { consecutiveFailures: 5, openMs: '10s' },
  timeout: { callMs: '2s' },
})

console.log(await guard.run(({ signal }) => search(signal)), 'after', calls, 'calls')
await spillway.close()
