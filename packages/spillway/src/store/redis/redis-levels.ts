/** The level checks as a script: many requests in one trip, each key sent once. */
import type { Keys } from '../keys.js'
import type { LevelReply, LevelStore } from '../port.js'
import type { ScriptRunner } from './runner.js'
import { SCRIPTS } from './scripts.gen.js'

const NUMBERS_IN_A_REPLY = 5

/** `time` replaces the server's, for tests that feed twins the same history. */
export function createRedisLevels(
  runner: ScriptRunner,
  keys: Keys,
  time: () => string = () => '',
): LevelStore {
  return {
    async check(requests) {
      const numbers = new Map<string, number>()
      const args: number[] = []
      for (const { levels, cost } of requests) {
        args.push(levels.length, cost)
        for (const { key, limit, windowUs, burst } of levels) {
          let number = numbers.get(key)
          if (number === undefined) {
            number = numbers.size + 1
            numbers.set(key, number)
          }
          args.push(number, limit, windowUs, burst)
        }
      }
      const allKeys = Array.from(numbers.keys(), keys.level)
      const json = `[${args.join()}]`
      const reply = (await runner.run(SCRIPTS.checkLevels, allKeys, [time(), json])) as number[]
      return requests.map((_, index) => readReply(reply, index * NUMBERS_IN_A_REPLY))
    },
  }
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
