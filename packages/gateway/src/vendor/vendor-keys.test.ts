import { createSpillway } from 'spillway'
import { createVirtualClock } from 'spillway/testing'
import { describe, expect, it } from 'vitest'
import type { TargetConfig, VendorConfig } from '../config/config.js'
import { isKey, VendorKeys } from './vendor-keys.js'

const ANY_KEY = {} as TargetConfig

/** Keys with exhausted quotas, by name: the time until each is renewed. */
async function exhaustedKeys(resets: Record<string, number>) {
  const clock = createVirtualClock()
  const spillway = createSpillway({ clock })
  const guard = spillway.guard('vendor', {})
  const names = Object.keys(resets)
  const config = { name: 'vendor', keys: names.map((name) => ({ name, secret: `of ${name}` })) }
  const keys = new VendorKeys(config as unknown as VendorConfig, { spillway, guard }, undefined)
  for (const name of names) {
    const key = keys.choose({ key: name } as TargetConfig)
    if (!isKey(key)) throw new Error(`${name} is quarantined already`)
    const permit = await clock.until(Promise.resolve(keys.enter(key)))
    if (permit instanceof Error) throw permit
    keys.answered(permit, { kind: 'quota-exhausted', resetMs: resets[name] })
  }
  await clock.advance(1_000)
  return { clock, keys }
}

describe('vendor keys', () => {
  it.each([
    ['first', { soon: 60_000, later: 600_000, last: 6_000_000 }],
    ['second', { later: 600_000, soon: 60_000, last: 6_000_000 }],
    ['last', { last: 6_000_000, later: 600_000, soon: 60_000 }],
  ])(
    'a request without a usable key is refused until the %s key, which waits the shortest time, is renewed',
    async (_, resets) => {
      const { keys } = await exhaustedKeys(resets)
      expect(keys.choose(ANY_KEY)).toMatchObject({
        retryAfterMs: expect.closeTo(59_000, -3),
        details: { key: 'soon' },
      })
    },
  )

  it('a key is chosen again when its quota is renewed, and the others are not', async () => {
    const { clock, keys } = await exhaustedKeys({ later: 600_000, soon: 60_000 })
    await clock.advance(60_000)
    expect(keys.choose(ANY_KEY)).toMatchObject({ name: 'soon' })
  })
})
