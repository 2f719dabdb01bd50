import type { SpillwayHealth } from 'spillway/health'
import { createVirtualClock } from 'spillway/testing'
import { describe, expect, it } from 'vitest'
import { Health } from './health.js'
import { OverloadWatch, type OverloadWatchOptions } from './overload-watch.js'

const SHARED = (): SpillwayHealth => ({ status: 'healthy', guards: {} }) as never

const IN_FLIGHT: OverloadWatchOptions['pressure'] = {
  maxInFlight: 10,
  cpu: undefined,
  memory: undefined,
  loopUtilization: undefined,
  loopDelayMs: undefined,
}

function setUp() {
  const clock = createVirtualClock()
  const load = { inFlight: 0 }
  const changes: boolean[] = []
  const watch = new OverloadWatch({
    pressure: IN_FLIGHT,
    at: 1,
    forMs: 10_000,
    clock,
    inFlight: () => load.inFlight,
    onChange: (isOverloaded) => changes.push(isOverloaded),
  })
  const health = new Health({ shared: SHARED, isOverloaded: () => watch.isOverloaded })
  health.phase = 'ready'
  const readyAfter = async (ms: number) => {
    await clock.advance(ms)
    const { status, body } = health.at('/health/ready') ?? {}
    return [status, JSON.parse(body ?? '{}').status]
  }
  return { clock, load, changes, watch, health, readyAfter }
}

describe('readiness under overload', () => {
  it('a gateway is not ready while its pressure stays at the limit, and a short peak has no effect', async () => {
    const { load, changes, watch, readyAfter } = setUp()
    load.inFlight = 10
    expect(await readyAfter(9_000)).toEqual([200, 'ready'])
    load.inFlight = 9
    expect(await readyAfter(2_000)).toEqual([200, 'ready'])
    load.inFlight = 12
    expect(await readyAfter(11_000)).toEqual([503, 'overloaded'])
    load.inFlight = 0
    expect(await readyAfter(3_000)).toEqual([503, 'overloaded'])
    expect(await readyAfter(3_000)).toEqual([200, 'ready'])
    expect(changes).toEqual([true, false])
    watch.close()
  })

  it('an overloaded gateway stays live, and a drain is reported before the overload', async () => {
    const { load, watch, health, readyAfter } = setUp()
    load.inFlight = 10
    await readyAfter(11_000)
    expect(health.at('/health/live')?.status).toBe(200)
    health.phase = 'draining'
    expect(await readyAfter(0)).toEqual([503, 'draining'])
    watch.close()
  })

  it.each([
    [{ ready: 2, total: 2, overloaded: 0 }, 200, 'ready'],
    [{ ready: 2, total: 2, overloaded: 1 }, 200, 'ready'],
    [{ ready: 2, total: 2, overloaded: 2 }, 503, 'overloaded'],
    [{ ready: 1, total: 2, overloaded: 1 }, 503, 'overloaded'],
    // All workers have crashed and are being replaced: connections wait for them.
    [{ ready: 0, total: 2, overloaded: 0 }, 200, 'ready'],
  ])(
    'a gateway with the workers %j answers %i %s, whatever this worker measures',
    (workers, status, expected) => {
      for (const isOverloaded of [() => false, () => true]) {
        const health = new Health({
          shared: SHARED,
          isOverloaded,
          workers: () => ({ ...workers, started: true }),
        })
        health.phase = 'ready'
        const answer = health.at('/health/ready')
        expect([answer?.status, JSON.parse(answer?.body ?? '').status]).toEqual([status, expected])
      }
    },
  )
})
