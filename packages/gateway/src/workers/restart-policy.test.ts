import { describe, expect, it } from 'vitest'
import { RestartPolicy } from './restart-policy.js'

describe('restart policy of workers', () => {
  it('a worker that served for 10 s is replaced at once, however often that happens', () => {
    const policy = new RestartPolicy(2)
    for (let i = 0; i < 100; i++) {
      policy.ended(10_000)
      expect([policy.delayMs, policy.isCrashLoop]).toEqual([0, false])
    }
  })

  it('workers that end early are replaced with a delay that doubles up to 10 s', () => {
    const policy = new RestartPolicy(1)
    const delays = Array.from({ length: 10 }, () => {
      policy.ended(undefined)
      return policy.delayMs
    })
    expect(delays).toEqual([0, 100, 200, 400, 800, 1_600, 3_200, 6_400, 10_000, 10_000])
  })

  it('six early ends of each worker in a row are a crash loop, until one worker serves for 10 s', () => {
    const policy = new RestartPolicy(2)
    for (let i = 0; i < 11; i++) policy.ended(i % 2 === 0 ? undefined : 9_999)
    expect(policy.isCrashLoop).toBe(false)
    policy.ended(undefined)
    expect(policy.isCrashLoop).toBe(true)
    policy.ended(10_000)
    expect([policy.isCrashLoop, policy.delayMs]).toEqual([false, 0])
  })
})
