/**
 * Pods whose callers always want more than a limit allows, in virtual time. Each pod behaves as the permit queue does:
 * one request at a time, then it sleeps as long as the reply says. Timers, requests and replies are late at random, as
 * on a loaded machine.
 */
import type { LimitSpec } from '../src/store/limit-spec.js'
import type { WakeMessage } from '../src/store/limits/waiting-pods.js'
import type { MaybePromise, TakeReply, TakeRequest } from '../src/store/port.js'

const START_US = 4_000_000_000_000_000
const ROUND_TRIP_US = 600

export interface FleetOptions {
  limits: readonly LimitSpec[]
  /** The costs of one call of each pod; as many pods as entries. */
  costs: readonly (readonly number[])[]
  callers: number
  seconds: number
  seed: number
  /** How late a timer or a message is: on average and at most. */
  lateMs: { mean: number; most: number }
  /** Pod 0 stops for good after this time. */
  stopsAfterSeconds?: number
  /** The store granted a pod this number of calls. */
  onGranted?(pod: number, calls: number, seconds: number): void
}

type Take = (
  request: TakeRequest,
  nowUs: number,
) => MaybePromise<{ reply: TakeReply; message?: WakeMessage | undefined }>

/** The calls of each pod after a warm-up: before another pod waits, the first one may take everything. */
export async function saturate(options: FleetOptions, take: Take): Promise<number[]> {
  const { limits, costs, callers, seconds, seed, lateMs, stopsAfterSeconds } = options
  const random = randomFrom(seed)
  const lateUs = () =>
    Math.floor(Math.min(-Math.log(1 - random()) * lateMs.mean, lateMs.most) * 1_000)
  const events: { atUs: number; run: () => MaybePromise<void> }[] = []
  let nowUs = START_US
  const after = (us: number, run: () => MaybePromise<void>) => {
    events.push({ atUs: nowUs + us, run })
  }
  const pods = costs.map((cost, index) => {
    return { name: `p${index}`, cost, calls: 0, requesting: false, woken: false, sleep: 0 }
  })
  type Pod = (typeof pods)[number]
  const countsFromUs = START_US + 1_500_000
  const stopUs = START_US + (stopsAfterSeconds ?? Number.POSITIVE_INFINITY) * 1_000_000
  const wayUs = () => ROUND_TRIP_US / 2 + Math.floor(lateUs() / 2)

  const ask = (pod: Pod) => {
    if (pod.requesting || (pod === pods[0] && nowUs >= stopUs)) return
    Object.assign(pod, { requesting: true, woken: false, sleep: pod.sleep + 1 })
    after(wayUs(), async () => {
      const request: TakeRequest = {
        ...{ guard: 'g', lane: 'a', limits, version: 0 },
        costs: Array.from({ length: callers }, () => pod.cost),
        waiter: { pod: pod.name, forUs: 7_200_000_000 },
      }
      const { reply, message } = await take(request, nowUs)
      if (reply.granted > 0) {
        options.onGranted?.(pods.indexOf(pod), reply.granted, (nowUs - START_US) / 1_000_000)
      }
      const woken = pods.find(({ name }) => name === message?.pod)
      if (woken !== undefined) {
        after(wayUs(), () => {
          woken.woken = woken.requesting
          ask(woken)
        })
      }
      after(wayUs(), () => answered(pod, reply))
    })
  }
  const answered = (pod: Pod, { granted, waitUs }: TakeReply) => {
    pod.requesting = false
    if (nowUs >= countsFromUs) pod.calls += granted
    if (granted === callers || pod.woken) return ask(pod)
    const sleep = ++pod.sleep
    after(waitUs + lateUs(), () => {
      if (pod.sleep === sleep) ask(pod)
    })
  }

  for (const pod of pods) after(Math.floor(random() * 50_000), () => ask(pod))
  for (;;) {
    let next = 0
    for (const [index, { atUs }] of events.entries()) {
      if (atUs < (events[next]?.atUs as number)) next = index
    }
    const [event] = events.splice(next, 1)
    if (event === undefined || event.atUs >= START_US + seconds * 1_000_000) break
    nowUs = event.atUs
    await event.run()
  }
  return pods.map(({ calls }) => calls)
}

/** The largest difference from the mean, as a part of the mean. */
export function inequality(calls: readonly number[]): number {
  const mean = calls.reduce((sum, each) => sum + each, 0) / calls.length
  return Math.max(...calls.map((each) => Math.abs(each - mean))) / mean
}

function randomFrom(seed: number): () => number {
  let state = seed * 7_919 + 1
  return () => {
    state = (state * 48_271) % 2_147_483_647
    return state / 2_147_483_648
  }
}
