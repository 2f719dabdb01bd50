/**
 * Checks levels by a script: many requests in one round trip, each key sent once. In a cluster a
 * script has the keys of one slot, so there it takes several: see `levels-by-slot.ts`.
 */
import type { Keys } from '../../keys.js'
import { isWindow } from '../../levels/check-levels.js'
import { refundLogKey } from '../../levels/refund-levels.js'
import type { LevelReply, LevelRequest, LevelStore } from '../../port.js'
import type { ScriptRunner } from '../connection/runner.js'
import { SCRIPTS } from '../scripts.gen.js'
import { levelsBySlot } from './levels-by-slot.js'

const FIGURES = 5
type Figures = [
  refusedBy: number,
  waitUs: number,
  tightest: number,
  remaining: number,
  resetUs: number,
]
/** In place of the burst: the level is a sliding window. */
const SLIDING = 0

/** `time` replaces the server's time in twin tests. */
export function createRedisLevels(
  runner: ScriptRunner,
  keys: Keys,
  time: () => string = () => '',
): LevelStore {
  const together: LevelStore = {
    async check(requests) {
      const { levelKeys, numbers } = writeRequests(requests, false)
      const args = [time(), numbers]
      const reply = await runner.run(SCRIPTS.checkLevels, levelKeys.map(keys.level), args, 'brief')
      return readReplies(reply as number[], requests)
    },
    async refund(requests) {
      const known = requests.filter(({ fullAtUs }) => fullAtUs !== undefined)
      if (known.length === 0) return
      const { levelKeys, numbers } = writeRequests(known, true)
      const allKeys = [...levelKeys, ...levelKeys.map(refundLogKey)].map(keys.level)
      await runner.run(SCRIPTS.refundLevels, allKeys, [time(), numbers], 'brief')
    },
  }
  const { slotOf } = runner
  return slotOf === undefined ? together : levelsBySlot(together, (key) => slotOf(keys.level(key)))
}

/** Encodes the requests: each key once, everything else as numbers. `times`: include `atUs` and `fullAtUs`, for refunds. */
function writeRequests(requests: readonly LevelRequest[], times: boolean) {
  const known = new Map<string, number>()
  const levelKeys: string[] = []
  let numbers = ''
  for (const { levels, cost, atUs, fullAtUs } of requests) {
    numbers += `${numbers === '' ? '' : ','}${levels.length},${cost}`
    if (times) numbers += `,${atUs}`
    for (const [index, level] of levels.entries()) {
      const { key, limit, windowUs } = level
      const burst = isWindow(level) ? SLIDING : level.burst
      let number = known.get(key)
      if (number === undefined) {
        number = levelKeys.push(key)
        known.set(key, number)
      }
      numbers += `,${number},${limit},${windowUs},${burst}`
      if (times) numbers += `,${fullAtUs?.[index]}`
    }
  }
  return { levelKeys, numbers: `[${numbers}]` }
}

/** For each request its figures and, if it was allowed, one number per level; then the time. */
function readReplies(reply: readonly number[], requests: readonly LevelRequest[]): LevelReply[] {
  const atUs = reply.at(-1) as number
  let at = 0
  return requests.map(({ levels }) => {
    const [refusedBy, waitUs, tightest, remaining, resetUs] = reply.slice(
      at,
      at + FIGURES,
    ) as Figures
    at += FIGURES
    const end = refusedBy === 0 ? at + levels.length : at
    const fullAtUs = reply.slice(at, end)
    at = end
    return { refusedBy, waitUs, tightest, remaining, resetUs, atUs, fullAtUs }
  })
}
