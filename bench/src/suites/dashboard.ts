/**
 * Cost of a dashboard with 50 pods in the store, 20 guards and 5,000 decisions per second in the process that serves
 * it. CPU time of that process with and without an attached reader, in turns; frames per second and memory of the
 * page in Chromium.
 */
import { once } from 'node:events'
import { get, type IncomingMessage } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import { BenchError } from '../bench-error.js'
import { startOtherPods } from '../dashboard/other-pods.js'
import { framesByTheSecond, frameTimes, openRealPage } from '../dashboard/real-page.js'
import type { CpuReading } from '../dashboard/watched-pod.js'
import { type ServerProcess, startServerProcess } from '../gateway/server-process.js'
import { type Figure, median, type Preparation, type Round, type Suite } from '../measure.js'
import { startRedis } from '../redis-server.js'

const PODS = 50
const STRETCH_MS = 4_000
/** Time for the initial transfer to a new reader, which is not measured. */
const SETTLE_MS = 1_500
const LEAST_DECISIONS = 4_500
const POD = new URL('../dashboard/watched-pod.js', import.meta.url).href

async function startWatched(preparation: Preparation): Promise<ServerProcess> {
  const redis = await startRedis()
  preparation.atEnd(() => redis.stop())
  const pod = await startServerProcess(POD, [redis.url], preparation)
  startOtherPods(redis.url, PODS - 1, preparation)
  await sleep(5_000, undefined, { signal: preparation.signal })
  return pod
}

async function readingOf({ child }: ServerProcess): Promise<CpuReading> {
  const answer = once(child, 'message')
  child.send('cpu')
  return (await answer)[0] as CpuReading
}

/** Fraction of time that the process spends on the CPU. */
async function shareOf(pod: ServerProcess): Promise<number> {
  const before = await readingOf(pod)
  await sleep(STRETCH_MS)
  const after = await readingOf(pod)
  const ms = after.atMs - before.atMs
  const rate = ((after.decisions - before.decisions) * 1_000) / ms
  if (rate < LEAST_DECISIONS) throw new BenchError(`only ${Math.round(rate)} decisions a second`)
  return (after.cpuMs - before.cpuMs) / ms
}

/** Keeps the event feed open while `run` runs. */
async function whileWatched<T>({ url }: ServerProcess, run: () => Promise<T>): Promise<T> {
  const [response] = (await once(get(`${url}/events`), 'response')) as [IncomingMessage]
  let text = ''
  let bytes = 0
  response.setEncoding('utf8').on('data', (piece: string) => {
    bytes += piece.length
    text = (text + piece).slice(-400_000)
  })
  try {
    await sleep(SETTLE_MS)
    const before = bytes
    const result = await run()
    checkFeed(text, bytes - before)
    return result
  } finally {
    response.destroy()
  }
}

/** Checks that the feed contains pods and decisions; an empty feed would cost nothing. */
function checkFeed(text: string, bytes: number): void {
  const fleet = text.split('\n\n').findLast((each) => each.includes('event: fleet\n'))
  const { pods = [] } = fleet === undefined ? {} : JSON.parse(fleet.slice(fleet.indexOf('{')))
  if (pods.length !== PODS) throw new BenchError(`the feed has ${pods.length} pods`)
  if (!text.includes('event: decisions\n') || bytes < STRETCH_MS) {
    throw new BenchError('the feed has no decisions')
  }
}

async function cpuShare(preparation: Preparation): Promise<Round> {
  const pod = await startWatched(preparation)
  let rounds = 0
  return async () => {
    const watched = () => whileWatched(pod, () => shareOf(pod))
    // The second contender may find warmer caches, so they alternate.
    if (rounds++ % 2 === 0) {
      const without = await shareOf(pod)
      return (await watched()) - without
    }
    const with_ = await watched()
    await sleep(SETTLE_MS)
    return with_ - (await shareOf(pod))
  }
}

/** Frames per second, aggregated by `of` over all seconds of a tour through the page. */
function framesOf(of: (seconds: readonly number[]) => number) {
  return async (preparation: Preparation): Promise<Round> => {
    const { url } = await startWatched(preparation)
    const page = await openRealPage(url, PODS, preparation)
    return async () => of((await page.tour(frameTimes)).flatMap(framesByTheSecond))
  }
}

/** Highest memory during a tour through the page. */
async function pageMemory(preparation: Preparation): Promise<Round> {
  const { url } = await startWatched(preparation)
  const page = await openRealPage(url, PODS, preparation)
  const look = async (_: unknown, ms: number) => {
    await sleep(ms)
    return page.memoryMb()
  }
  return async () => Math.max(...(await page.tour(look)))
}

const TOURS = { warmUp: 1, counted: 5 }

const frames: Figure = {
  name: 'dashboard-frames',
  what: 'frames per second of the page in the slowest second of a tour through its views',
  unit: 'frames/s',
  target: { atLeast: 30 },
  rounds: TOURS,
  prepare: framesOf((seconds) => Math.min(...seconds)),
}

const medianFrames: Figure = {
  name: 'dashboard-frames-median',
  what: 'the same in the median second',
  unit: 'frames/s',
  rounds: TOURS,
  prepare: framesOf(median),
}

const memory: Figure = {
  name: 'dashboard-memory-mb',
  what: 'highest memory (PSS) of the renderer process during a tour through its views',
  unit: 'MB',
  target: { atMost: 200 },
  rounds: TOURS,
  prepare: pageMemory,
}

const share: Figure = {
  name: 'dashboard-cpu-share',
  what: 'CPU time of the feed for a reader, as a fraction of a core: 50 pods, 20 guards, 5,000 decisions a second',
  unit: 'of a core',
  target: { atMost: 0.03 },
  rounds: { warmUp: 1, counted: 9 },
  prepare: cpuShare,
}

export const dashboard: Suite = {
  name: 'dashboard',
  what: 'CPU time, frame rate and memory of an open dashboard',
  benches: [share, frames, medianFrames, memory],
}
