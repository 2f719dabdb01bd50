import { setTimeout as sleep } from 'node:timers/promises'
import { OptionsError, SpillwayError } from 'spillway'
import { createBulkhead, createTimeout } from 'spillway/local'

/** The response to a client. Only refusals by Spillway have their own status. */
function toResponse(error: unknown): Response {
  if (!(error instanceof SpillwayError)) return new Response('internal error', { status: 500 })
  const { code, message, status, retryAfterMs } = error
  const headers = new Headers()
  if (retryAfterMs !== undefined) headers.set('retry-after', `${Math.ceil(retryAfterMs / 1_000)}`)
  return Response.json({ code, message }, { status, headers })
}

async function answer(call: Promise<unknown>) {
  const response = await call.then(() => new Response('fine'), toResponse)
  console.log(response.status, await response.text())
}

const timeout = createTimeout({ name: 'weather', callMs: 20 })
const slots = createBulkhead({ name: 'weather', limit: 1 })

await answer(timeout.run(() => sleep(100)))
await Promise.all([answer(slots.run(() => sleep(20))), answer(slots.run(() => sleep(20)))])
await answer(slots.run(() => Promise.reject(new Error('my own'))))

// All mistakes in options are reported together, when the mechanism is created.
try {
  createBulkhead({ limit: 0, queue: { size: 5, timeoutMs: '5 secs' as '5s' } })
} catch (error) {
  if (!(error instanceof OptionsError)) throw error
  console.log(error.code)
  console.log(error.message)
}
