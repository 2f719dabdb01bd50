/** Epochs, as a script. */
import type { Keys } from '../../keys.js'
import type { PulseStore } from '../../port.js'
import type { ScriptRunner } from '../connection/runner.js'
import { SCRIPTS } from '../scripts.gen.js'

type PulseWire = [
  epoch: string,
  nowUs: number,
  count: number,
  lostUs: number,
  joined: number,
  pods: number,
  rank: number,
]

/** `time` replaces the server's time in twin tests. */
export function createRedisPulses(
  runner: ScriptRunner,
  keys: Keys,
  time: () => string = () => '',
): PulseStore {
  return {
    async pulse({ guard, pod, part, epoch, count, fresh }) {
      const scriptKeys = [keys.epoch(guard), keys.shares(guard)]
      const args = [time(), pod, part, epoch, count, fresh]
      const reply = await runner.run(SCRIPTS.pulseGuard, scriptKeys, args)
      const [name, nowUs, pulses, lostUs, joined, pods, rank] = reply as PulseWire
      return { epoch: name, nowUs, count: pulses, lostUs, joined, pods, rank }
    },
  }
}
