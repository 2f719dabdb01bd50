import { expect, it } from 'vitest'
import { StartsPerTurn } from './starts-per-turn.js'

const nextTurn = () => new Promise((resolve) => setImmediate(resolve))

it('requests of one turn begin four at a time, in order, and the first four at once', async () => {
  const starts = new StartsPerTurn()
  const begun: number[] = []
  for (let request = 0; request < 10; request++) starts.add(() => begun.push(request))
  const counts = [begun.length]
  while (begun.length < 10) {
    await nextTurn()
    counts.push(begun.length)
  }
  expect(counts).toEqual([4, 8, 10])
  expect(begun).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 8, 9])
})

it('a request begins at once in each turn in which fewer than four have begun', async () => {
  const starts = new StartsPerTurn()
  let begun = 0
  for (let turn = 1; turn <= 3; turn++) {
    for (let request = 0; request < 4; request++) starts.add(() => begun++)
    expect(begun).toBe(turn * 4)
    await nextTurn()
  }
})
