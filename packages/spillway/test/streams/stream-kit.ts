/** A vendor, a guard around fetch and shortcuts for reading answers. */
import { createSpillway, type Guard, type GuardOptions } from 'spillway'
import type { VirtualClock } from 'spillway/testing'
import { SpillwayError } from '../../src/core/errors.js'
import { onTestFinished } from '../concurrent-tests.js'

export const QUESTION = [{ role: 'user' as const, content: 'twelve chars' }]

/** Creates a guard that is closed at once when the test ends. */
export function startGuard(options: GuardOptions = {}, clock?: VirtualClock): Guard {
  const spillway = createSpillway(clock === undefined ? {} : { clock })
  onTestFinished(() => {
    const closed = spillway.close({ graceMs: 0 })
    return clock === undefined ? closed : clock.until(closed)
  })
  return spillway.guard('vendor', options)
}

/** A streamed request for the OpenAI endpoint. */
export function question(body: object = {}, signal?: AbortSignal): RequestInit {
  return {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ model: 'gpt', stream: true, messages: QUESTION, ...body }),
    signal: signal ?? null,
  }
}

/** The error with which a call failed. */
export async function errorOf(call: PromiseLike<unknown>): Promise<unknown> {
  try {
    await call
  } catch (error) {
    return error
  }
  throw new Error('it did not fail')
}

export function codeOf(error: unknown): string {
  return error instanceof SpillwayError ? error.code : String(error)
}

/** All chunks until the source ended or broke. */
export async function readAll<C>(source: AsyncIterable<C>) {
  const chunks: C[] = []
  try {
    for await (const chunk of source) chunks.push(chunk)
    return { chunks, error: undefined }
  } catch (error) {
    return { chunks, error }
  }
}

/** The tokens of OpenAI events as one text. */
export function tokensOf(chunks: readonly Uint8Array[]): string {
  const text = Buffer.concat(chunks).toString()
  return [...text.matchAll(/"content":"([^"]*)"/g)].map(([, token]) => token).join('')
}

export function pauseMs(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms))
}

/** Waits until the condition holds; the error names `what` if it takes too long. */
export async function until(what: string, isSo: () => boolean, withinMs = 60_000): Promise<void> {
  const endMs = performance.now() + withinMs
  while (!isSo()) {
    if (performance.now() > endMs) throw new Error(`not within ${withinMs} ms: ${what}`)
    await pauseMs(2)
  }
}

/** How the bodies of a guard's calls ended, without zero counts. */
export function endsOf(guard: Guard): Record<string, number> {
  return Object.fromEntries(
    Object.entries(guard.snapshot().bodies).filter(([, count]) => count > 0),
  )
}

/** Outcomes of a guard's calls, without zero counts. */
export function outcomesOf(guard: Guard): Record<string, number> {
  return Object.fromEntries(
    Object.entries(guard.snapshot().outcomes).filter(([, count]) => count > 0),
  )
}
