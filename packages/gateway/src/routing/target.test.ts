import { createRandom } from 'spillway/testing'
import { describe, expect, it } from 'vitest'
import { orderByPressure, orderTargets, type Target } from './target.js'

/** Targets with the given headroom each. */
function targetsWith(...headrooms: number[]): Target[] {
  return headrooms.map(
    (headroom, index) => ({ index, vendor: { headroom: () => headroom } }) as never,
  )
}

function orders(targets: Target[], choices: number, times = 3_000): string[] {
  const random = createRandom(1)
  return Array.from({ length: times }, () =>
    orderTargets(targets, choices, 'gpt', random)
      .map((target) => (target as unknown as { index: number }).index)
      .join(''),
  )
}

function share(all: string[], first: string): number {
  return all.filter((order) => order.startsWith(first)).length / all.length
}

describe('routing by headroom', () => {
  it('targets are picked in proportion to their headroom, and never without any', () => {
    const all = orders(targetsWith(0.6, 0, 0.3), 3)
    expect(share(all, '0')).toBeGreaterThan(0.62)
    expect(share(all, '0')).toBeLessThan(0.71)
    expect(share(all, '1')).toBe(0)
  })

  it('the other targets follow by headroom, with fallbacks last', () => {
    expect(new Set(orders(targetsWith(0, 0.2, 0.9, 1), 3))).toEqual(new Set(['1203', '2103']))
  })

  it('the last target with headroom is picked for the largest random number', () => {
    const picked = orderTargets(targetsWith(0.1, 0.2, 0), 3, 'gpt', () => 1)
    expect((picked[0] as unknown as { index: number }).index).toBe(1)
  })

  it('targets without headroom keep their configured order', () => {
    expect(new Set(orders(targetsWith(0, 0, 0), 2))).toEqual(new Set(['012']))
  })
})

describe('targets for times of pressure', () => {
  const order = (pressure: number, ...when: (number | undefined)[]) =>
    orderByPressure(
      when.map(
        (each, index) =>
          ({
            index,
            vendor: { pressure },
            config: { when: each === undefined ? undefined : { pressure: each } },
          }) as never,
      ),
    )
      .map((target) => (target as unknown as { index: number }).index)
      .join('')

  it('targets with `when` come first from their pressure on, and are left out below it', () => {
    expect(order(0.79, undefined, undefined, 0.8)).toBe('01')
    expect(order(0.8, undefined, undefined, 0.8)).toBe('201')
  })

  it('the target for the highest pressure comes first', () => {
    expect(order(0.9, undefined, 0.8, 0.95)).toBe('10')
    expect(order(1.2, undefined, 0.8, 0.95)).toBe('210')
  })

  it('targets without `when` keep their order', () => {
    expect(order(2, undefined, undefined)).toBe('01')
  })
})
