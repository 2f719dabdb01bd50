import { describe, expect, it } from 'vitest'
import { CallPermit, LaneTraffic } from './lane-traffic.js'

describe('calls of one lane', () => {
  it('a call that hung stays forgotten when a call that began before it is answered late', () => {
    const traffic = new LaneTraffic(10_000, 30_000)
    const begin = (nowMs: number) => {
      const call = new CallPermit('main', 0)
      traffic.begin(call, nowMs)
      return call
    }
    traffic.end(begin(0), 'success', 100)
    const early = begin(1_000)
    const hung = begin(2_000)
    traffic.end(begin(3_000), 'success', 3_100)
    traffic.end(early, 'success', 11_000)
    traffic.end(hung, 'failure', 12_000)
    const { hung: report } = traffic.report(12_000)
    expect(report?.failed).toEqual([])
    expect(report?.answeredAgoUs).toBe(9_000_000)
  })
})
