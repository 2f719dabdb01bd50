/**
 * Writes heartbeats for the other pods of the fleet, one per second and pod. The pods exist only in the store, so
 * they use no CPU time of this machine.
 */
import { redisStore } from 'spillway/redis'
import type { Preparation } from '../measure.js'

const GROUP = 'pods:fleet'
const BEAT_MS = 1_000
const LIFE_US = 5_000_000

export function startOtherPods(redis: string, count: number, { atEnd }: Preparation): void {
  const store = redisStore({ url: redis })
  const beat = async () => {
    const real = (await store.pods.list({ group: GROUP })).find(({ pod }) =>
      pod.startsWith('watched'),
    )
    if (real === undefined) return
    const names = Array.from({ length: count }, (_, index) => `pod-${index}`)
    const { snapshot } = real
    await Promise.all(
      names.map(async (pod) => store.pods.beat({ group: GROUP, pod, lifeUs: LIFE_US, snapshot })),
    )
  }
  // Redis may be busy; the next heartbeat repeats the data.
  const beating = setInterval(() => void beat().catch(() => {}), BEAT_MS)
  atEnd(async () => {
    clearInterval(beating)
    await store.close()
  })
}
