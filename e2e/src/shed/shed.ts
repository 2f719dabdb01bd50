/**
 * Ten times the capacity of one pod for twenty seconds. The pod answers its health checks at once, its memory
 * does not grow, admitted requests are served, and the pod recovers when the load ends.
 */
import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { Agent, request } from 'undici'
import { atLeast, atMost, type Figure, reported, type Scenario } from '../scenario.js'

const SECONDS = 20
/** A shorter run is enough for the pod without protection. */
const NAIVE_SECONDS = 3
const OVERLOAD = 10
/** Requests in flight that saturate a pod, to measure its capacity on this machine. */
const BUSY_CALLERS = 8
const CALIBRATION_MS = 2_000
/** Connections of the proxy between a pod and its callers. */
const CONNECTIONS = 256
const USERS = 500
const TICK_MS = 5
const MEGABYTE = 1_000_000
const RECOVERED_MS = 100
const MOST_RECOVERY_MS = 10_000
const LOOK_MS = 200

interface Answer {
  readonly status: number
  readonly tookMs: number
}

interface Health {
  tookMs: number[]
  failed: number
}

interface Run {
  /** Requests per second at saturation. */
  capacity: number
  /** Requests served within a second, as a fraction of the capacity. */
  goodput: number
  answers: readonly Answer[]
  health: Health
  /** Memory of the pod in bytes, before the load and at its maximum. */
  restRss: number
  peakRss: number
  recoveryMs: number
}

export const shed: Scenario = {
  name: 'shed',
  what: 'ten times the capacity of one pod, with probes of its health',
  seconds: SECONDS + NAIVE_SECONDS + 10,
  async run() {
    const naive = await overload('naive', NAIVE_SECONDS)
    const pod = await overload('protected', SECONDS)
    return figuresOf(naive, pod)
  },
}

async function overload(kind: 'naive' | 'protected', seconds: number): Promise<Run> {
  const pod = start('pod.js', [kind])
  const [port] = (await once(pod, 'message')) as [number]
  const url = `http://127.0.0.1:${port}`
  const callers = new Agent({ connections: CONNECTIONS })
  const later = new Agent()
  try {
    const capacity = await calibrate(url, later)
    const restRss = await rssOf(pod)
    const prober = start('prober.js', [url])
    let peakRss = restRss
    pod.on('message', (rss: number) => {
      peakRss = Math.max(peakRss, rss)
    })
    const looking = setInterval(() => pod.send('rss'), LOOK_MS)
    const answers = await load(url, callers, seconds, capacity * OVERLOAD)
    clearInterval(looking)
    prober.send('end')
    const [health] = (await once(prober, 'message')) as [Health]
    prober.kill()
    // Clients disconnect if they get no answer.
    await callers.destroy()
    const recoveryMs = kind === 'naive' ? Number.NaN : await recovery(url, later)
    const goodput = served(answers, 1_000).length / (seconds * capacity)
    return { capacity, goodput, answers, health, restRss, peakRss, recoveryMs }
  } finally {
    await Promise.all([callers.destroy(), later.destroy()])
    pod.kill('SIGKILL')
  }
}

function start(file: string, args: readonly string[]): ChildProcess {
  const child = fork(fileURLToPath(new URL(file, import.meta.url)), args)
  const endWithUs = () => child.kill('SIGKILL')
  process.once('exit', endWithUs)
  child.once('close', () => process.off('exit', endWithUs))
  return child
}

async function rssOf(pod: ChildProcess): Promise<number> {
  pod.send('rss')
  const [rss] = (await once(pod, 'message')) as [number]
  return rss
}

async function calibrate(url: string, agent: Agent): Promise<number> {
  const startMs = performance.now()
  let answered = 0
  const caller = async () => {
    while (performance.now() - startMs < CALIBRATION_MS) {
      await ask(url, agent, answered)
      answered++
    }
  }
  await Promise.all(Array.from({ length: BUSY_CALLERS }, caller))
  return (answered * 1_000) / (performance.now() - startMs)
}

/** Sends at a constant rate that does not depend on the answers. Resolves when the last request is sent. */
async function load(
  url: string,
  agent: Agent,
  seconds: number,
  rps: number,
): Promise<readonly Answer[]> {
  const answers: Answer[] = []
  const startMs = performance.now()
  let sent = 0
  while (sent < seconds * rps) {
    const due = ((performance.now() - startMs) / 1_000) * rps
    while (sent < due) void ask(url, agent, sent++).then((answer) => answers.push(answer))
    await sleep(TICK_MS)
  }
  return answers.slice()
}

async function ask(url: string, dispatcher: Agent, number: number): Promise<Answer> {
  const startMs = performance.now()
  const tookMs = () => performance.now() - startMs
  try {
    const headers = { 'x-user': `user-${number % USERS}` }
    const { statusCode: status, body } = await request(url, { headers, dispatcher })
    await body.dump()
    return { status, tookMs: tookMs() }
  } catch {
    return { status: 0, tookMs: tookMs() }
  }
}

/** Time until ten consecutive requests, at half of the capacity, are served immediately. */
async function recovery(url: string, agent: Agent): Promise<number> {
  const startMs = performance.now()
  let good = 0
  while (good < 10 && performance.now() - startMs < MOST_RECOVERY_MS) {
    const { status, tookMs } = await ask(url, agent, 7 * good)
    good = status === 200 && tookMs < RECOVERED_MS ? good + 1 : 0
  }
  return performance.now() - startMs
}

function figuresOf(naive: Run, pod: Run): Figure[] {
  const all = served(pod.answers, Number.POSITIVE_INFINITY)
  const refused = pod.answers.filter(({ status }) => status === 503)
  const neither = pod.answers.length - all.length - refused.length
  return [
    reported('health p99 without shedder, ms', percentile(naive.health.tookMs, 0.99)),
    atMost('health p99, ms', percentile(pod.health.tookMs, 0.99), 200),
    atMost('health checks failed', pod.health.failed, 0),
    reported('capacity, requests a second', pod.capacity),
    reported('goodput without shedder', naive.goodput),
    atLeast('goodput, of capacity', pod.goodput, 0.5),
    atMost(
      'p99 of the served, ms',
      percentile(
        all.map(({ tookMs }) => tookMs),
        0.99,
      ),
      1_000,
    ),
    atLeast('refused', refused.length, 1),
    atMost('neither served nor refused', neither, 0),
    reported('memory at rest, MB', pod.restRss / MEGABYTE),
    atMost('memory grown by, MB', (pod.peakRss - pod.restRss) / MEGABYTE, 150),
    atMost('recovery, ms', pod.recoveryMs, 2_000),
  ]
}

function served(answers: readonly Answer[], withinMs: number): Answer[] {
  return answers.filter(({ status, tookMs }) => status === 200 && tookMs < withinMs)
}

function percentile(numbers: readonly number[], part: number): number {
  const sorted = [...numbers].sort((a, b) => a - b)
  return sorted[Math.floor(sorted.length * part)] ?? 0
}
