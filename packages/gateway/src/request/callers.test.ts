import { Socket } from 'node:net'
import { describe, expect, it } from 'vitest'
import { hashOfKey } from '../config/key-hash.js'
import { Callers } from './callers.js'

const callersOf = (...users: string[]) =>
  new Callers(
    users.map((user) => ({
      keyHash: hashOfKey(`key-of-${user}`),
      user,
      tier: undefined,
      priority: 'normal' as const,
    })),
  )

/** One connection and the caller of each key sent over it. */
function connection() {
  const request = { headers: {}, socket: new Socket() }
  return (callers: Callers, key: string | undefined) => callers.find(key, request)?.user
}

describe('callers on one connection', () => {
  it('each key on a connection is recognised as that of its own caller', () => {
    const callers = callersOf('ann', 'ben')
    const whose = connection()
    const keys = ['key-of-ann', 'key-of-ann', 'key-of-ben', 'key-of-ann', 'key-of-ben']
    expect(keys.map((key) => whose(callers, key))).toEqual(['ann', 'ann', 'ben', 'ann', 'ben'])
  })

  it.each([
    ['of the same length', 'key-of-anx'],
    ['that is a prefix of it', 'key-of-an'],
    ['that is longer', 'key-of-ann '],
    ['that is empty', ''],
    ['that is missing', undefined],
  ])('a wrong key after a right one is refused: one %s', (_, wrong) => {
    const callers = callersOf('ann')
    const whose = connection()
    expect(whose(callers, 'key-of-ann')).toBe('ann')
    expect(whose(callers, wrong)).toBeUndefined()
    expect(whose(callers, wrong)).toBeUndefined()
    expect(whose(callers, 'key-of-ann')).toBe('ann')
  })

  it('a key known from an earlier configuration is not accepted', () => {
    const whose = connection()
    expect(whose(callersOf('ann', 'ben'), 'key-of-ann')).toBe('ann')
    expect(whose(callersOf('ben'), 'key-of-ann')).toBeUndefined()
  })
})

describe('callers with configured keys', () => {
  it('a caller has the user, tier and priority of its key, not those of its headers', () => {
    const keyHash = hashOfKey('key-of-ann')
    const callers = new Callers([{ keyHash, user: 'ann', tier: 'paid', priority: 'high' }])
    const headers = { 'spillway-user': 'ben', 'spillway-priority': 'critical' }
    const request = { headers, socket: new Socket() }
    const ann = { user: 'ann', tier: 'paid', priority: 'high' }
    expect(callers.find('key-of-ann', request)).toEqual(ann)
    // From memory of the connection.
    expect(callers.find('key-of-ann', request)).toEqual(ann)
    expect(callers.known).toBe(true)
  })

  it('without any configured key every key is refused', () => {
    const callers = new Callers([])
    expect(callers.known).toBe(true)
    expect(connection()(callers, 'key-of-ann')).toBeUndefined()
  })

  it('a wrong key is refused on a new connection, and again on the same one', () => {
    const whose = connection()
    const callers = callersOf('ann')
    expect([whose(callers, 'wrong'), whose(callers, 'wrong')]).toEqual([undefined, undefined])
  })
})

describe('callers without configured keys', () => {
  const find = (headers: Record<string, string | string[]>) =>
    new Callers(undefined).find(undefined, { headers, socket: new Socket() })

  it('a request without caller headers is anonymous', () => {
    expect(new Callers(undefined).known).toBe(false)
    expect(find({})).toEqual({ user: 'anonymous', tier: undefined, priority: 'normal' })
  })

  it.each([
    [{ 'spillway-user': 'ann' }, { user: 'ann', tier: undefined, priority: 'normal' }],
    [{ 'spillway-tier': 'paid' }, { user: 'anonymous', tier: 'paid', priority: 'normal' }],
    [{ 'spillway-priority': 'low' }, { user: 'anonymous', tier: undefined, priority: 'low' }],
    [{ 'spillway-priority': 'urgent' }, { user: 'anonymous', tier: undefined, priority: 'normal' }],
    [{ 'spillway-user': '' }, { user: 'anonymous', tier: undefined, priority: 'normal' }],
    [
      { 'spillway-user': 'ann', 'spillway-tier': ['paid', 'free'] },
      { user: 'ann', tier: undefined, priority: 'normal' },
    ],
  ])('the caller headers %j identify %j', (headers, caller) => {
    expect(find(headers as Record<string, string>)).toEqual(caller)
  })
})
