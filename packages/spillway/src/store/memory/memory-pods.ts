/** Live pods, within one process. Twins: `redis/lua/*-pod*.lua`. */
import type { PodStore } from '../port.js'

interface Pod {
  untilUs: number
  atUs: number
  snapshot: string
  command: { untilUs: number; text: string } | undefined
}

export interface MemoryPods extends PodStore {
  /** Number of live pods of a group. */
  live(group: string): number
}

/** A time this far ahead means that the clock was set back since. */
const FAR_AHEAD_US = 60_000_000

export function createMemoryPods(nowUs: () => number): MemoryPods {
  const groups = new Map<string, Map<string, Pod>>()

  /** The live pods of a group. */
  function alive(group: string): [string, Pod][] {
    const now = nowUs()
    return [...(groups.get(group) ?? [])].filter(([, { untilUs }]) => untilUs > now)
  }

  return {
    live: (group) => alive(group).length,
    beat({ group, pod, lifeUs, snapshot }) {
      const pods = groups.get(group) ?? new Map<string, Pod>()
      groups.set(group, pods)
      const now = nowUs()
      const latestUs = now + 2 * lifeUs + FAR_AHEAD_US
      for (const [name, { untilUs }] of pods) {
        if (untilUs <= now || untilUs > latestUs) pods.delete(name)
      }
      const last = pods.get(pod)?.command
      const command = last !== undefined && last.untilUs > now ? last : undefined
      pods.set(pod, { untilUs: now + lifeUs, atUs: now, snapshot, command })
      return { live: pods.size, command: command?.text ?? '' }
    },
    sendCommand({ group, pod, forUs, command }) {
      const known = alive(group).find(([name]) => name === pod)?.[1]
      if (known !== undefined) known.command = { untilUs: nowUs() + forUs, text: command }
      return known !== undefined
    },
    leave({ group, pod }) {
      const pods = groups.get(group)
      pods?.delete(pod)
      if (pods?.size === 0) groups.delete(group)
    },
    list({ group }) {
      const now = nowUs()
      const records = alive(group).map(([pod, { snapshot, atUs }]) => ({
        pod,
        snapshot,
        ageUs: Math.max(0, now - atUs),
      }))
      return records.sort((one, other) => (one.pod < other.pod ? -1 : 1))
    },
  }
}
