/** Live pods, as scripts. */
import type { Keys } from '../../keys.js'
import type { PodRecord, PodStore } from '../../port.js'
import type { ScriptRunner } from '../connection/runner.js'
import { SCRIPTS } from '../scripts.gen.js'

const FIELDS_OF_A_POD = 3

/** `time` replaces the server's time in twin tests. */
export function createRedisPods(
  runner: ScriptRunner,
  keys: Keys,
  time: () => string = () => '',
): PodStore {
  const listKeys = (group: string) => [keys.pods(group), keys.podSnapshots(group)]
  const podKeys = (group: string) => [...listKeys(group), keys.podCommands(group)]
  return {
    async beat({ group, pod, lifeUs, snapshot }) {
      const args = [time(), pod, lifeUs, snapshot]
      const reply = await runner.run(SCRIPTS.beatPod, podKeys(group), args)
      const [live, command] = reply as [number, string]
      return { live, command }
    },
    async sendCommand({ group, pod, forUs, command }) {
      const args = [time(), pod, forUs, command]
      const commandKeys = [keys.pods(group), keys.podCommands(group)]
      return (await runner.run(SCRIPTS.sendPodCommand, commandKeys, args, 'patient')) === 1
    },
    async leave({ group, pod }) {
      await runner.run(SCRIPTS.leavePod, podKeys(group), [pod])
    },
    async list({ group }) {
      const reply = await runner.run(SCRIPTS.listPods, listKeys(group), [time()], 'brief')
      return readPods(reply as (string | number)[])
    },
  }
}

function readPods(reply: readonly (string | number)[]): PodRecord[] {
  const pods: PodRecord[] = []
  for (let at = 0; at < reply.length; at += FIELDS_OF_A_POD) {
    const [pod, ageUs, snapshot] = reply.slice(at) as [string, number, string]
    pods.push({ pod, ageUs, snapshot })
  }
  return pods.sort((one, other) => (one.pod < other.pod ? -1 : 1))
}
