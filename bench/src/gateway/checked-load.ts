/** Runs load against a proxy and fails unless every response is a success that came from the vendor. */
import { setTimeout as sleep } from 'node:timers/promises'
import { isDeepStrictEqual } from 'node:util'
import { BenchError } from '../bench-error.js'
import type { Preparation } from '../measure.js'
import { ANSWER, PATH, REQUEST } from './chat.js'
import type { Vendor } from './vendor.js'
import { type Answered, CONNECTIONS, type Load, openWrk } from './wrk.js'

export interface Forwarder {
  readonly url: string
  readonly headers: Readonly<Record<string, string>>
}

export interface Span {
  seconds: number
  /** Ends early when the vendor has received `total` requests since it started. */
  total?: number
}

/** Fails unless every response is a success. */
export type CheckedLoad = (span: Span) => Promise<Answered>

/** Requests in flight when wrk stops reach the vendor but are not counted by wrk, in this round and in the last. */
const MOST_UNANSWERED = 2 * CONNECTIONS
const SETTLE_MS = 100
const POLL_MS = 20

export async function openLoad(
  { url, headers }: Forwarder,
  vendor: Vendor,
  preparation: Preparation,
  body = REQUEST,
): Promise<CheckedLoad> {
  const load = { url: `${url}${PATH}`, headers, body }
  await checkAnswer(load)
  const wrk = await openWrk(load, preparation)

  const run = async ({ seconds, total }: Span) => {
    const enough = new AbortController()
    const running = wrk.run(seconds, enough.signal)
    if (total === undefined) return running
    const { signal } = preparation
    const stopped = () => signal.aborted || enough.signal.aborted
    try {
      await Promise.race([running, untilSeen(vendor, total, stopped)])
    } finally {
      enough.abort()
    }
    const answered = await running
    signal.throwIfAborted()
    return answered
  }

  return async (span) => {
    const before = await vendor.count()
    const answered = await run(span)
    const seen = (await settled(vendor)) - before
    const unanswered = seen - answered.requests
    if (unanswered >= 0 && unanswered <= MOST_UNANSWERED) return answered
    throw new BenchError(`${url}: ${answered.requests} answers to ${seen} requests at the vendor`)
  }
}

async function untilSeen(vendor: Vendor, total: number, stopped: () => boolean): Promise<void> {
  while (!stopped() && (await vendor.count()) < total) await sleep(POLL_MS)
}

/** Returns the vendor's count once no request is in flight, including requests of disconnected clients. */
async function settled(vendor: Vendor): Promise<number> {
  let seen = await vendor.count()
  while (true) {
    await sleep(SETTLE_MS)
    const now = await vendor.count()
    if (now === seen) return seen
    seen = now
  }
}

async function checkAnswer({ url, headers, body = '' }: Load): Promise<void> {
  const response = await fetch(url, { method: 'POST', headers, body })
  const text = await response.text()
  if (response.status === 200 && holdsAnswer(text)) return
  throw new BenchError(`${url} does not answer as the vendor does: ${response.status} ${text}`)
}

/** Compares parsed responses: a gateway may reorder or add fields. */
function holdsAnswer(text: string): boolean {
  try {
    const got = JSON.parse(text)
    return Object.entries(JSON.parse(ANSWER)).every(([key, value]) =>
      isDeepStrictEqual(got[key], value),
    )
  } catch {
    return false
  }
}
