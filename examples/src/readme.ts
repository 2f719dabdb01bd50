import { createDeadline, runWithDeadline } from 'spillway'
import { createBulkhead, createRetry, createTimeout } from 'spillway/local'

const retry = createRetry({ attempts: 3, baseMs: 20, budget: 0.2 })
const bulkhead = createBulkhead({ name: 'openai', limit: 50, queue: { size: 450 } })
const timeout = createTimeout({ name: 'openai', callMs: '30s' })

/** The retry outside, so that no slot is held while it waits; the timeout around the call itself. */
function ask(question: string): Promise<string> {
  return retry.run(({ attempt }) =>
    bulkhead.run(() => timeout.run(({ signal }) => callVendor(question, attempt, signal))),
  )
}

/** A vendor that fails the first time. */
async function callVendor(question: string, attempt: number, signal: AbortSignal): Promise<string> {
  signal.throwIfAborted()
  if (attempt === 1) throw new Error('503 from the vendor')
  return `an answer to "${question}", at attempt ${attempt}`
}

const answer = await runWithDeadline(createDeadline('20s'), () => ask('why is the sky blue?'))
console.log(answer)
console.log(bulkhead.snapshot())
