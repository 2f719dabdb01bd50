import { Registry } from 'prom-client'
import { describe, expect, it } from 'vitest'
import { createSpillway } from '../../src/index.js'
import { exposeToPrometheus } from '../../src/observe/index.js'

describe('reserved against actual cost', () => {
  const limits = ['tokens', 'requests'].map((unit) => ({
    unit,
    limit: 1e6,
    windowMs: '1m' as const,
  }))

  it('the snapshot and metrics of a guard compare reserved with actual cost, by unit', async () => {
    const spillway = createSpillway()
    const guard = spillway.guard('vendor', { limits })
    const call = (reserved: number, actual: number) =>
      guard.run(({ settle }) => settle({ tokens: actual }), { cost: { tokens: reserved } })
    for (const [reserved, actual] of [
      [100, 100],
      [110, 100],
      [300, 100],
      [10, 100],
      [150, 100],
      [70, 100],
    ] as const) {
      await call(reserved, actual)
    }
    const ranges = {
      'under 0.5': 1,
      '0.5 to 0.8': 1,
      '0.8 to 1.25': 2,
      '1.25 to 2': 1,
      'over 2': 1,
    }
    expect(guard.snapshot().estimates).toEqual([
      {
        unit: 'tokens',
        calls: 6,
        reserved: 740,
        actual: 600,
        recentRatio: expect.any(Number),
        ranges,
      },
    ])
    const registry = new Registry()
    exposeToPrometheus({ spillway, registry })
    const text = await registry.metrics()
    expect(text).toContain('spillway_reserved_units_total{guard="vendor",unit="tokens"} 740')
    expect(text).toContain('spillway_actual_units_total{guard="vendor",unit="tokens"} 600')
    expect(text).toContain(
      'spillway_estimates_total{guard="vendor",unit="tokens",ratio="0.8 to 1.25"} 2',
    )
    await spillway.close()
  })

  it('calls without an estimate, without an actual cost and refused ones are not compared', async () => {
    const spillway = createSpillway()
    const guard = spillway.guard('vendor', { limits })
    await guard.run(({ settle }) => settle({ tokens: 5 }))
    await guard.run(({ settle }) => settle({ tokens: 0 }), { cost: { tokens: 5 } })
    await guard.run(({ settle }) => settle({ tokens: Number.NaN }), { cost: { tokens: 5 } })
    await guard.run(() => 'unsettled', { cost: { tokens: 5 } })
    expect(guard.snapshot().estimates).toEqual([])
    await guard.run(({ settle }) => settle({ tokens: 5 }), { cost: { tokens: 5 } })
    expect(guard.snapshot().estimates[0]?.calls).toBe(1)
    expect(guard.snapshot().estimates[0]?.recentRatio).toBe(1)
    // The guard that replaces it continues the counts.
    const next = spillway.replaceGuard('vendor', { limits })
    expect(next.snapshot().estimates[0]?.calls).toBe(1)
    await spillway.close()
  })
})
