import { describe, expect, it } from 'vitest'
import { checkLevels } from '../../levels/check-levels.js'
import { refundLevels } from '../../levels/refund-levels.js'
import type { ChargeLog } from '../../levels/sliding-window.js'
import type { LevelRequest, LevelStore } from '../../port.js'
import { StoreFailure } from '../../store-failure.js'
import { levelsBySlot } from './levels-by-slot.js'

const HOUR_US = 3_600_000_000

/** A cluster in which each hash tag has its own slot; scripts can be made to fail per slot. */
function setup() {
  const buckets = new Map<string, number>()
  const logs = new Map<string, ChargeLog>()
  const roundTrips: string[] = []
  const failing = new Set<string>()
  const slotOf = (key: string) => key.charCodeAt(1)
  const note = (what: string, requests: readonly LevelRequest[]) => {
    const keys = requests.flatMap(({ levels }) => levels.map(({ key }) => key))
    expect(new Set(keys.map(slotOf)).size, 'all keys of a script are of one slot').toBe(1)
    roundTrips.push(`${what} ${keys.join(' ')}`)
    if (failing.has(`${what} ${keys[0]}`)) throw new StoreFailure('ambiguous', 'lost')
  }
  const together: LevelStore = {
    async check(requests) {
      note('check', requests)
      return checkLevels(buckets, requests, 1, logs)
    },
    async refund(requests) {
      note('refund', requests)
      refundLevels(buckets, requests, 1, logs)
    },
  }
  const spent = (key: string) => Math.round(((buckets.get(key) ?? 1) - 1) / (HOUR_US / 10))
  return { levels: levelsBySlot(together, slotOf), roundTrips, failing, spent, logs }
}

const level = (key: string, rank: number, burst = 10) => ({
  key,
  limit: 10,
  windowUs: HOUR_US,
  burst,
  rank,
})
const settled = () => new Promise(setImmediate)

describe('user-limit levels in several slots', () => {
  it('levels are charged together per slot, the most specific slot first', async () => {
    const { levels, roundTrips, spent } = setup()
    const request = {
      levels: [level('{*}:g', 0), level('{u}:u', 2), level('{i}:i', 3), level('{i}:e', 4)],
      cost: 2,
    }
    const [reply] = await levels.check([request])
    expect(roundTrips).toEqual(['check {i}:i {i}:e', 'check {u}:u', 'check {*}:g'])
    expect(reply).toMatchObject({ refusedBy: 0, remaining: 8 })
    expect(['{*}:g', '{u}:u', '{i}:i', '{i}:e'].map(spent)).toEqual([2, 2, 2, 2])
  })

  it('a refusal by a later level refunds the earlier ones and names the refusing level', async () => {
    const { levels, roundTrips, spent } = setup()
    const request = { levels: [level('{*}:g', 0, 1), level('{u}:u', 2)], cost: 1 }
    await levels.check([request])
    const [refused] = await levels.check([request])
    expect(refused).toMatchObject({ refusedBy: 1, tightest: 1, remaining: 0 })
    expect(refused?.waitUs).toBeGreaterThan(0)
    await settled()
    expect(roundTrips.at(-1)).toBe('refund {u}:u')
    expect(['{*}:g', '{u}:u'].map(spent)).toEqual([1, 1])
  })

  it('when the most specific level refuses, the other slots get no request', async () => {
    const { levels, roundTrips } = setup()
    const request = { levels: [level('{*}:g', 0), level('{u}:u', 2, 1)], cost: 1 }
    const replies = await levels.check([request, request, request])
    expect(replies.map(({ refusedBy }) => refusedBy)).toEqual([0, 2, 2])
    expect(roundTrips).toEqual(['check {u}:u {u}:u {u}:u', 'check {*}:g'])
  })

  it('many requests take one round trip per slot and round', async () => {
    const { levels, roundTrips } = setup()
    const requests = ['a', 'b', 'a'].map((user) => ({
      levels: [level('{*}:g', 0), level(`{${user}}:u`, 2)],
      cost: 1,
    }))
    const replies = await levels.check(requests)
    expect(replies.map(({ remaining }) => remaining)).toEqual([9, 8, 7])
    expect(roundTrips).toEqual(['check {a}:u {a}:u', 'check {b}:u', 'check {*}:g {*}:g {*}:g'])
  })

  it('when a slot does not answer, the check fails and charged levels are refunded', async () => {
    const { levels, failing, spent } = setup()
    failing.add('check {*}:g')
    const request = { levels: [level('{*}:g', 0), level('{u}:u', 2)], cost: 1 }
    await expect(levels.check([request])).rejects.toMatchObject({ kind: 'ambiguous' })
    await settled()
    expect(spent('{u}:u')).toBe(0)
  })

  it('a level counts as spent when its refund fails', async () => {
    const { levels, failing, spent } = setup()
    const request = { levels: [level('{*}:g', 0, 1), level('{u}:u', 2)], cost: 1 }
    await levels.check([request])
    failing.add('refund {u}:u')
    expect((await levels.check([request]))[0]).toMatchObject({ refusedBy: 1 })
    await settled()
    expect(spent('{u}:u')).toBe(2)
  })

  it('refund() reaches the levels in every slot', async () => {
    const { levels, spent } = setup()
    const request = { levels: [level('{*}:g', 0), level('{u}:u', 2)], cost: 3 }
    const [reply] = await levels.check([request])
    await levels.refund([{ ...request, ...reply }])
    expect(['{*}:g', '{u}:u'].map(spent)).toEqual([0, 0])
  })

  it('sliding window in one slot is refunded when a level in another slot refuses the request', async () => {
    const { levels, logs } = setup()
    const window = { ...level('{u}:uw', 2), algorithm: 'sliding-window' as const }
    const request = { levels: [level('{*}:g', 0, 3), window], cost: 3 }
    const [first] = await levels.check([request])
    expect(first).toMatchObject({ refusedBy: 0, atUs: 1 })
    expect(logs.get('{u}:uw')).toEqual([1, 3])
    expect((await levels.check([request]))[0]).toMatchObject({ refusedBy: 1 })
    await settled()
    expect(logs.get('{u}:uw')).toEqual([1, 3])
    await levels.refund([{ ...request, ...first }])
    expect(logs.get('{u}:uw')).toEqual([])
  })
})
