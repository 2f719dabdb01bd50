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
