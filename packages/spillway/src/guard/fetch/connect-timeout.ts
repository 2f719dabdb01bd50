/**
 * Limits the time to connect. Node's fetch has no option for it, so this listens on the diagnostics channels of
 * undici, which report when a request is created and when it has a connection.
 */
import { AsyncLocalStorage } from 'node:async_hooks'
import { subscribe } from 'node:diagnostics_channel'
import { type Details, readableTime, SpillwayError } from '../../core/errors.js'
import { emit, listening as isHeard } from '../../core/events.js'
import type { Clock } from '../../core/time/clock.js'
import type { CallContext } from '../pipeline/context.js'

const attempts = new AsyncLocalStorage<{ connected(): void }>()
/** Requests of undici's, by which it names them on its channels. */
const waiting = new WeakMap<object, { connected(): void }>()
let listening = false

function listen(): void {
  if (listening) return
  listening = true
  subscribe('undici:request:create', (message) => {
    const attempt = attempts.getStore()
    if (attempt !== undefined) waiting.set((message as { request: object }).request, attempt)
  })
  subscribe('undici:client:sendHeaders', (message) => {
    waiting.get((message as { request: object }).request)?.connected()
  })
}

export function withinConnectTime(
  connectMs: number,
  clock: Clock,
  { guard: name, signal }: CallContext,
  call: (signal: AbortSignal) => Promise<Response>,
): Promise<Response> {
  listen()
  const late = new AbortController()
  const timer = clock.schedule(connectMs, () => {
    if (isHeard()) emit({ type: 'timeout.fired', name, kind: 'connect', limitMs: connectMs })
    late.abort(connectError(name, connectMs))
  })
  const connected = () => timer.cancel()
  const answer = attempts.run({ connected }, () => call(AbortSignal.any([signal, late.signal])))
  answer.then(connected, connected)
  return answer
}

function connectError(name: string, connectMs: number): SpillwayError {
  return new SpillwayError({
    code: 'CALL_TIMEOUT',
    stage: 'timeout',
    scope: 'local',
    details: { name, kind: 'connect', limitMs: connectMs },
    explain: (details: Details) =>
      `${details.name}: timed out, no connection within ${readableTime(details.limitMs)} (connectMs)`,
  })
}
