import { expect, it } from 'vitest'
import { BoundedCache } from './bounded-cache.js'

it('a bounded cache is emptied when a new key would exceed its size', () => {
  const cache = new BoundedCache<string, number>(2)
  cache.set('a', 1).set('b', 2).set('b', 3)
  expect([...cache]).toEqual([
    ['a', 1],
    ['b', 3],
  ])
  cache.set('c', 4)
  expect([...cache]).toEqual([['c', 4]])
})
