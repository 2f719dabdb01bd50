/** Cost of a refusal, and the effect of hedging and of bounded queues. */
import { once } from 'node:events'
import { PassThrough } from 'node:stream'
import { setTimeout as sleep } from 'node:timers/promises'
import { createBackpressureQueue, createLoadShedder } from 'spillway/local'
import { openWrk } from '../gateway/wrk.js'
import { type Comparison, callEach, type Figure, type Preparation, type Suite } from '../measure.js'
import { startRefusing } from '../overload/refusing-servers.js'
import { measureTail } from '../overload/slow-now-and-then.js'
import { peerName } from '../peer-name.js'

const DECISIONS = 20_000
const ITEMS = 20_000
const WATERMARK = 64
const REFUSING_SECONDS = 1
const FIRST_SAMPLE_MS = 300

const shedDecision: Figure = {
  name: 'shed-decision-ns',
  what: 'a decision of a load shedder with all signals, during an overload',
  unit: 'ns',
  target: { atMost: 300 },
  async prepare({ atEnd }) {
    const shedder = createLoadShedder({
      maxQueue: 100,
      maxInFlight: 1_000,
      maxRps: 1e12,
      slaMs: 1_000,
      cpu: 0.8,
      memory: 0.5,
      loopUtilization: 0.9,
      loopDelayMs: 100,
      tiers: { free: 2, pro: 3 },
      priorities: { low: 4 },
      inTime: true,
      waiting: () => 50,
      // 20 % above the limit under any load of this machine; for the other figures, the larger of the two.
      sensors: { memory: () => 0.6, cpu: () => 0, loopUtilization: () => 0, loopDelayMs: () => 0 },
    })
    atEnd(() => shedder.close())
    const users = Array.from({ length: 1_000 }, (_, number) => ({
      user: `user-${number}`,
      tier: number % 3 === 0 ? 'free' : 'pro',
      priority: 'normal' as const,
    }))
    let next = 0
    let shed = 0
    const decide = () => {
      const request = users[next++ % users.length]!
      if (shedder.check(request) !== undefined) shed++
    }
    // The first decision starts the sampling.
    decide()
    await sleep(FIRST_SAMPLE_MS)
    return callEach(DECISIONS, () => {
      decide()
      return shed > 0 || next < users.length ? 1 : 0
    })
  },
}

const refusal: Comparison = {
  name: 'refusal-vs-under-pressure',
  what: 'refusals of an overloaded server, over HTTP',
  target: 1,
  peerName: peerName('@fastify/under-pressure'),
  unit: 'requests/s',
  rounds: { warmUp: 2, counted: 15 },
  async prepare(preparation) {
    return {
      ours: await refusing('spillway', preparation),
      peer: await refusing('under-pressure', preparation),
    }
  },
}

async function refusing(kind: 'spillway' | 'under-pressure', preparation: Preparation) {
  const url = await startRefusing(kind, preparation)
  await untilRefused(url)
  const wrk = await openWrk({ url, headers: {}, refused: true }, preparation)
  return async () => {
    await untilRefused(url)
    const { requests, seconds } = await wrk.run(REFUSING_SECONDS)
    return requests / seconds
  }
}

/** Both sides take their first sample shortly after their start. */
async function untilRefused(url: string): Promise<void> {
  for (let status = 0; status !== 503; ) {
    const response = await fetch(url)
    await response.arrayBuffer()
    status = response.status
  }
}

const backpressure: Comparison = {
  name: 'backpressure-vs-node-stream',
  what: 'objects through a bounded queue',
  target: 1,
  peerName: 'PassThrough of node:stream',
  unit: 'ns/op',
  prepare() {
    return { ours: timed(throughQueue), peer: timed(throughStream) }
  },
}

function timed(work: () => Promise<number>) {
  return async () => {
    const startMs = performance.now()
    const received = await work()
    if (received !== ITEMS) throw new Error(`${ITEMS - received} of ${ITEMS} items are missing`)
    return ((performance.now() - startMs) * 1e6) / ITEMS
  }
}

async function throughQueue(): Promise<number> {
  const queue = createBackpressureQueue<{ number: number }>({
    size: WATERMARK,
    highWatermark: WATERMARK,
  })
  const produce = async () => {
    for (let number = 0; number < ITEMS; number++) {
      const wait = queue.put({ number })
      if (wait !== undefined) await wait
    }
    queue.close()
  }
  return consume(produce(), queue)
}

async function throughStream(): Promise<number> {
  const stream = new PassThrough({ objectMode: true, highWaterMark: WATERMARK })
  const produce = async () => {
    for (let number = 0; number < ITEMS; number++) {
      if (!stream.write({ number })) await once(stream, 'drain')
    }
    stream.end()
  }
  return consume(produce(), stream)
}

async function consume(produced: Promise<void>, items: AsyncIterable<{ number: number }>) {
  let received = 0
  for await (const { number } of items) if (number === received) received++
  await produced
  return received
}

/** The random source is seeded, so the calls are the same each time. */
const ONCE = { warmUp: 0, counted: 1 }
const SEED = 1

const hedgeTail: Comparison = {
  name: 'hedge-p99',
  what: '99th percentile if 2 % of the calls take 20 times as long (virtual time)',
  target: 3,
  peerName: 'the same without a hedge',
  unit: 'ms',
  rounds: ONCE,
  prepare() {
    return {
      ours: async () => (await measureTail({}, SEED)).p99Ms,
      peer: async () => (await measureTail(undefined, SEED)).p99Ms,
    }
  },
}

const hedgeCalls: Figure = {
  name: 'hedge-extra-calls',
  what: 'second attempts, as a fraction of the calls',
  unit: 'of the calls',
  target: { atMost: 0.06 },
  rounds: ONCE,
  prepare() {
    return async () => (await measureTail({}, SEED)).extra
  },
}

export const overload: Suite = {
  name: 'overload',
  what: 'load shedding, hedging, backpressure',
  benches: [shedDecision, refusal, backpressure, hedgeTail, hedgeCalls],
}
