/**
 * A concurrency limit of 10 in front of a vendor that streams. Readers take three chunks and leave, in one of two ways.
 * First 30 streams are started, and their readers abort the requests. Then 10 are started, and their readers stop
 * reading without an abort, like a handler that ignores the disconnect of its client. The results are the streams that
 * are open at the vendor 1 s after the start, and the free slots 2 s later.
 *
 * A limiter of functions can be used in two ways: around the request alone, or around the request and its reading.
 * p-queue's `timeout` and Bottleneck's `expiration` would free a slot after a fixed time, even if its stream is read.
 * They are not set, because streams of LLMs take minutes. Spillway's `unreadMs` ends only streams that are not read.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import Bottleneck from 'bottleneck'
import { bulkhead } from 'cockatiel'
import pLimit from 'p-limit'
import PQueue from 'p-queue'
import { createSpillway } from 'spillway'
import { startVendor } from '../parts/vendor.mjs'

const SLOTS = 10
const QUEUE = 20
const CHUNKS = 3

/** Each returns a function that runs another one in a slot. */
const LIMITERS = {
  // https://github.com/sindresorhus/p-limit#usage
  'p-limit': () => pLimit(SLOTS),
  // https://github.com/sindresorhus/p-queue#usage
  'p-queue': () => {
    const queue = new PQueue({ concurrency: SLOTS })
    return (work) => queue.add(work)
  },
  // https://github.com/connor4312/cockatiel#bulkheadlimit-queue
  'cockatiel bulkhead': () => {
    const policy = bulkhead(SLOTS, QUEUE)
    return (work) => policy.execute(work)
  },
  // https://github.com/SGrondin/bottleneck#constructor
  Bottleneck: () => {
    const limiter = new Bottleneck({ maxConcurrent: SLOTS })
    return (work) => limiter.schedule(work)
  },
  // docs/how-to/streams.md
  'Spillway, unreadMs of 1 s': () => {
    const guard = createGuard({ unreadMs: '1s' })
    return (work) => guard.run(work)
  },
  'Spillway, default unreadMs of 60 s': () => {
    const guard = createGuard({})
    return (work) => guard.run(work)
  },
}

function createGuard(timeout) {
  return createSpillway().guard('streams', {
    concurrency: { limit: SLOTS },
    queue: { size: QUEUE, timeoutMs: '30s' },
    timeout: { callMs: '30s', idleMs: '30s', ...timeout },
  })
}

export async function run(progress) {
  const rows = []
  for (const [name, create] of Object.entries(LIMITERS)) {
    const ways = name.startsWith('Spillway')
      ? ['the request']
      : ['the request', 'the request and its reading']
    for (const around of ways) {
      progress(`${name}, around ${around}`)
      const [aborted, silent] = await Promise.all([
        measure(create(), around, { streams: SLOTS + QUEUE, aborts: true }),
        measure(create(), around, { streams: SLOTS, aborts: false }),
      ])
      const { open, free: afterAbort } = aborted
      rows.push({ name, around, open, afterAbort, afterSilence: silent.free })
    }
  }
  return rows
}

async function measure(inSlot, around, { streams, aborts }) {
  const vendor = await startStreams()
  await fetch(`${vendor.url}/warm-up`)
  const leaving = new AbortController()
  const request = () => fetch(vendor.url, { signal: leaving.signal })
  const read = async (answer) => {
    const reader = answer.body.getReader()
    for (let chunk = 0; chunk < CHUNKS; chunk++) await reader.read()
    // The reader aborts, or stops reading without an abort.
    await new Promise((_, reject) => {
      leaving.signal.addEventListener('abort', () => reject(leaving.signal.reason))
    })
  }
  for (let i = 0; i < streams; i++) {
    const ended =
      around === 'the request' ? inSlot(request).then(read) : inSlot(() => request().then(read))
    ended.catch(() => {})
  }
  await sleep(1_000)
  const open = vendor.open()
  if (aborts) leaving.abort()
  await sleep(2_000)
  const free = await freeSlots(inSlot)
  vendor.stop()
  return { open, free }
}

/** How many of ten short calls start within 200 ms. */
async function freeSlots(inSlot) {
  let started = 0
  for (let i = 0; i < SLOTS; i++) {
    inSlot(async () => {
      started++
      await sleep(1_000)
    }).catch(() => {})
  }
  await sleep(200)
  return started
}

async function startStreams() {
  let open = 0
  const vendor = await startVendor((_request, response) => {
    open++
    const timer = setInterval(() => response.write('chunk\n'), 20)
    response.once('close', () => {
      open--
      clearInterval(timer)
    })
  })
  return { ...vendor, open: () => open }
}
