/**
 * Checks levels by a script: many requests in one round trip, each key sent once. In a cluster a
 * script has the keys of one slot, so there it takes several: see `levels-by-slot.ts`.
 */
import type { Keys } from '../../keys.js'
import { isWindow } from '../../levels/check-levels.js'
import type { LevelReply, LevelRequest, LevelStore } from '../../port.js'
import type { Script, ScriptRunner } from '../connection/runner.js'
import { SCRIPTS } from '../scripts.gen.js'
import { levelsBySlot } from './levels-by-slot.js'

const NUMBERS_IN_A_REPLY = 5
/** In place of the burst: the level is a sliding window. */
const SLIDING = 0

/** `time` replaces the server's time in twin tests. */
export function createRedisLevels(
  runner: ScriptRunner,
  keys: Keys,
  time: () => string = () => '',
): LevelStore {
  const send = (script: Script, requests: readonly LevelRequest[]) => {
    const { allKeys, numbers } = writeRequests(requests, keys, script === SCRIPTS.refundLevels)
    return runner.run(script, allKeys, [time(), numbers], 'brief')
  }
  const together: LevelStore = {
    async check(requests) {
      const reply = (await send(SCRIPTS.checkLevels, requests)) as number[]
      const atUs = reply.at(-1) as number
      return requests.map(({ levels }, index) => {
        const figures = readReply(reply, index * NUMBERS_IN_A_REPLY)
        return levels.some(isWindow) ? { ...figures, atUs } : figures
      })
    },
    async refund(requests) {
      await send(SCRIPTS.refundLevels, requests)
    },
  }
  const { slotOf } = runner
  return slotOf === undefined ? together : levelsBySlot(together, (key) => slotOf(keys.level(key)))
}

/** Each key once, and the rest as numbers, in JSON built by hand. `times`: also when each request was charged. */
function writeRequests(requests: readonly LevelRequest[], keys: Keys, times: boolean) {
  const known = new Map<string, number>()
  const allKeys: string[] = []
  let numbers = ''
  for (const { levels, cost, atUs } of requests) {
    numbers += `${numbers === '' ? '' : ','}${levels.length},${cost}`
    if (times) numbers += `,${atUs ?? 0}`
    for (const level of levels) {
      const { key, limit, windowUs } = level
      const burst = isWindow(level) ? SLIDING : level.burst
      let number = known.get(key)
      if (number === undefined) {
        number = allKeys.push(keys.level(key))
        known.set(key, number)
      }
      numbers += `,${number},${limit},${windowUs},${burst}`
    }
  }
  return { allKeys, numbers: `[${numbers}]` }
}

function readReply(reply: readonly number[], at: number): LevelReply {
  return {
    refusedBy: reply[at] as number,
    waitUs: reply[at + 1] as number,
    tightest: reply[at + 2] as number,
    remaining: reply[at + 3] as number,
    resetUs: reply[at + 4] as number,
  }
}
