/**
 * Which of several targets a request goes to, by what each has left. By chance and not simply the best: all
 * gateways hear of the same numbers, a second old, and would all go to the same one.
 */
import type { Aim } from './aim.js'

/** The first `choices` of them in the order in which this request should try them; the others stay behind. */
export function pickOrder(
  aims: readonly Aim[],
  choices: number,
  model: string | undefined,
  random: () => number = Math.random,
): readonly Aim[] {
  const rooms = aims.slice(0, choices).map(({ vendor, target }) => vendor.headroom(model, target))
  const total = rooms.reduce((sum, room) => sum + room, 0)
  // Nobody has anything: in the order they are written in.
  const first = total > 0 ? drawn(rooms, random() * total) : 0
  const others = [...rooms.keys()].filter((index) => index !== first)
  others.sort((a, b) => (rooms[b] as number) - (rooms[a] as number))
  const order = [first, ...others].map((index) => aims[index] as Aim)
  return aims.length === choices ? order : [...order, ...aims.slice(choices)]
}

function drawn(rooms: readonly number[], at: number): number {
  let sum = 0
  for (const [index, room] of rooms.entries()) {
    sum += room
    if (room > 0 && at < sum) return index
  }
  return rooms.findLastIndex((room) => room > 0)
}
