import { describe, expect, it } from 'vitest'
import { MemoryBuckets } from './memory-levels.js'

describe('MemoryBuckets', () => {
  it('memory buckets drop exactly the buckets that are full again', () => {
    const buckets = new MemoryBuckets()
    // Every third bucket is still in debt when the others are full again.
    const fullAtUs = (user: number) => (user % 3 === 0 ? 20_000 + user : 10_000)
    for (let user = 0; user < 3_000; user++) {
      buckets.nowUs = user < 1_500 ? 0 : 15_000
      expect(buckets.get(`u${user}`)).toBeUndefined()
      buckets.set(`u${user}`, fullAtUs(user))
    }
    for (let user = 0; user < 3_000; user++) {
      expect(buckets.get(`u${user}`)).toBe(user % 3 === 0 ? fullAtUs(user) : undefined)
    }
  })

  it('every bucket keeps its value while the number of buckets grows', () => {
    const buckets = new MemoryBuckets()
    for (let user = 0; user < 5_000; user++) {
      buckets.get(`u${user}`)
      buckets.set(`u${user}`, 1_000 + user)
    }
    const wrong = Array.from({ length: 5_000 }, (_, user) => user).filter(
      (user) => buckets.get(`u${user}`) !== 1_000 + user,
    )
    expect(wrong).toEqual([])
  })

  it('a bucket can be set before it was read', () => {
    const buckets = new MemoryBuckets()
    buckets.set('a', 1)
    buckets.get('a')
    buckets.set('b', 2)
    buckets.set('b', 3)
    buckets.set('a', 4)
    expect([buckets.get('a'), buckets.get('b')]).toEqual([4, 3])
  })
})
