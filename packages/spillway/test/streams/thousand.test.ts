// test-group: io, slow

/** Hundreds of concurrent streams, of which a third is aborted: nothing is left behind. */
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { expect, it } from 'vitest'
import { createRandom } from '../../src/core/random.js'
import { usualOrLong } from '../long-run.js'
import { pauseMs, question, startGuard } from './stream-kit.js'
import { sharedNowMs, startVendorProcess } from './vendor-process.js'

const STREAMS = usualOrLong(150, 1_000)
/** A stream that is to be aborted never ends before, however busy the machine is. */
const LONG = { 'x-mock': JSON.stringify({ tokens: 500 }) }
/** Some are aborted before the vendor has seen them, so this is a lower bound. */
const MANY = STREAMS / 10
const CONTROLS = 60

it(`${STREAMS} concurrent streams, a third of them aborted at random points, leave no slot, socket or memory behind`, async () => {
  const vendor = await startVendorProcess({ knobs: { tokens: 10, tokenMs: [100, 300] } })
  const guard = startGuard({ concurrency: { limit: STREAMS } })
  const random = createRandom(1)
  const medians: number[] = []
  const controls: number[] = []
  const abortedAtMs = new Map<unknown, number>()
  const heaps: number[] = []

  async function stream(number: number, aborting: boolean): Promise<string> {
    const leave = new AbortController()
    let abortedMs = 0
    /** Aborts after this many chunks, while waiting for the next. */
    let patience = aborting ? Math.floor(random() * 6) : Number.POSITIVE_INFINITY
    try {
      const ask = number < STREAMS ? guard.fetch : fetch
      const response = await ask(`${vendor.url}/v1/chat/completions`, {
        ...question({}, leave.signal),
        headers: { 'x-number': String(number), ...(aborting && LONG) },
      })
      const reader = response.body?.getReader()
      do {
        if (patience-- === 0) {
          setTimeout(() => {
            abortedMs = sharedNowMs()
            leave.abort()
          }, random() * 100)
        }
      } while (!(await reader?.read())?.done)
      return 'complete'
    } catch (error) {
      if (abortedMs === 0) throw error
      abortedAtMs.set(String(number), abortedMs)
      return 'aborted'
    }
  }

  let calls = 0
  let mostAtOnce = 0
  for (let round = 0; round < 4; round++) {
    await vendor.clear()
    const streams = Array.from({ length: STREAMS }, (_, each) => stream(each, each % 3 === 0))
    // The control: the same without a guard, at the same time.
    const plain = Array.from({ length: CONTROLS }, (_, each) => stream(STREAMS + each, true))
    const results = await Promise.all(streams)
    await Promise.all(plain)
    calls += STREAMS
    const seen = await vendor.report()
    const delays: number[] = []
    const withoutGuard: number[] = []
    for (const { number, end, endedAtMs } of seen.calls) {
      const atMs = abortedAtMs.get(number)
      if (atMs === undefined || end !== 'cancelled') continue
      const list = Number(number) < STREAMS ? delays : withoutGuard
      list.push(endedAtMs - atMs)
    }
    abortedAtMs.clear()
    expect(delays.length).toBeGreaterThan(MANY)
    medians.push(medianOf(delays))
    controls.push(medianOf(withoutGuard))
    const { bodies, outcomes, active, attempts } = guard.snapshot()
    expect(active).toBe(0)
    expect(attempts).toBe(calls)
    const { complete, truncated, stalled, abandoned, aborted } = bodies
    expect([truncated, stalled, abandoned]).toEqual([0, 0, 0])
    expect(complete + aborted).toBe(calls)
    expect(outcomes).toMatchObject({ failure: 0, slow: 0, throttled: 0 })
    expect(outcomes.success).toBe(complete)
    expect(outcomes.success + outcomes.ignored).toBe(calls)
    expect(results.filter((each) => each === 'complete').length).toBeGreaterThan(STREAMS / 2)
    expect(results.filter((each) => each === 'aborted').length).toBeGreaterThan(MANY)
    expect(seen.counts.cancelled).toBeGreaterThan(MANY)
    mostAtOnce = Math.max(mostAtOnce, seen.mostAtOnce)
    heaps.push(usedHeap())
  }
  expect(mostAtOnce).toBeGreaterThan(STREAMS / 2)
  expect(Math.min(...medians)).toBeLessThan(50 + 10 * Math.min(...controls))
  // Two rounds of warm-up; from then on the heap stays constant.
  const grownMb = ((heaps[3] ?? 0) - (heaps[1] ?? 0)) / 1_048_576
  if (process.env.SPILLWAY_SHOW !== undefined) {
    console.log({ medians, controls, heapsMb: heaps.map((each) => each / 1_048_576) })
  }
  expect(grownMb).toBeLessThan(8)
  // Only idle kept-alive connections are left.
  await replaceAgent().close()
  while ((await vendor.report()).openSockets > 0) await pauseMs(10)
})

function medianOf(values: number[]): number {
  return values.sort((a, b) => a - b)[values.length >> 1] ?? Number.NaN
}

function usedHeap(): number {
  setFlagsFromString('--expose-gc')
  const collect = runInNewContext('gc') as () => void
  collect()
  collect()
  return process.memoryUsage().heapUsed
}

interface Agent {
  close(): Promise<void>
}

/** The object in which Node's fetch keeps its connections. Other tests in this thread get a new one. */
function replaceAgent(): Agent {
  const key = Symbol.for('undici.globalDispatcher.1')
  const old = Reflect.get(globalThis, key) as Agent
  Reflect.set(globalThis, key, new (old.constructor as new () => Agent)())
  return old
}
