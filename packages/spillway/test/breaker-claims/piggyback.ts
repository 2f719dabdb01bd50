/** Outcomes piggybacked on a permit request count as if they were reported alone. */
import type { Store } from 'spillway/shared'
import { describe, expect } from 'vitest'
import { it } from '../concurrent-tests.js'
import type { Fleet } from '../limit-claims/fleet.js'
import { eventually } from './fleet.js'

type Limits = Store['limits']
type Take = Parameters<Limits['take']>[0]
type Report = NonNullable<Take['report']>

const SPEC: Report['spec'] = {
  consecutive: 3,
  failureRate: 0,
  slowRate: 0,
  windowUs: 60_000_000,
  windowCalls: 0,
  minimumCalls: 1,
  openUs: 60_000_000,
  openFactor: 1,
  maxOpenUs: 60_000_000,
  probes: 1,
  successes: 1,
  probeLeaseUs: 1_000_000,
  quorum: 1,
}
const [SUCCESS, FAILURE] = [0, 1]

let guards = 0

/** An unused guard with `limit` requests in two minutes. */
function createPod(fleet: Fleet, limit = 10) {
  const guard = `ridden-${++guards}`
  const limits: Take['limits'] = [
    {
      id: 'requests',
      algorithm: 'sliding-window',
      limit,
      windowUs: 120_000_000,
      slices: 10,
      burst: 0,
      span: 'lane',
    },
  ]
  let sequence = 0
  const reportOf = (outcomes: Report['outcomes'], lane = 'a'): Report => ({
    guard,
    lane,
    spec: SPEC,
    pod: 'pod',
    sequence: ++sequence,
    generation: 0,
    outcomes,
    probes: [],
  })
  const take = async (requested: number, report?: Report) => {
    const costs = Array.from({ length: requested }, () => [1])
    const request = { guard, lane: 'a', limits, version: 0, costs, ...(report && { report }) }
    return await fleet.store().limits.take(request)
  }
  const counted = async (lane = 'a') => {
    const [view] = await fleet.store().breakers.sync([{ guard, lane, spec: SPEC, renew: [] }])
    return view!.calls
  }
  return { guard, reportOf, take, counted }
}

export function claimPiggyback(fleet: Fleet): void {
  describe('outcomes piggybacked on a permit request', () => {
    it('piggybacked outcomes are counted and the reply contains the breaker state', async () => {
      const { reportOf, take, counted } = createPod(fleet)
      expect(await take(2)).not.toHaveProperty('view')
      const reply = await take(3, reportOf([[SUCCESS, 4]]))
      expect(reply).toMatchObject({ granted: 3, waitUs: 0, view: { kind: 0, calls: 4 } })
      expect(await counted()).toBe(4)
    })

    it('piggybacked outcomes count once, whether they are sent again alone or piggybacked', async () => {
      const { reportOf, take, counted } = createPod(fleet)
      const report = reportOf([[SUCCESS, 4]])
      await take(1, report)
      expect(await take(1, report)).toMatchObject({ granted: 1, view: { calls: 4 } })
      expect(await fleet.store().breakers.report(report)).toMatchObject({ calls: 4 })
      const next = reportOf([[SUCCESS, 1]])
      expect(await fleet.store().breakers.report(next)).toMatchObject({ calls: 5 })
      expect(await take(1, next)).toMatchObject({ view: { calls: 5 } })
      expect(await counted()).toBe(5)
    })

    it('piggybacked outcomes do not change which permits are granted', async () => {
      const withoutReports = createPod(fleet, 3)
      const withReports = createPod(fleet, 3)
      for (const requested of [1, 1, 0, 2, 1]) {
        const {
          nowUs: _,
          view,
          ...reply
        } = await withReports.take(requested, withReports.reportOf([[SUCCESS, 1]]))
        expect(view).toBeDefined()
        const { granted, paused, capacities } = await withoutReports.take(requested)
        expect(reply).toMatchObject({ granted, paused, capacities })
      }
      // Outcomes count even if no permit was granted.
      expect(await withReports.counted()).toBe(5)
    })

    it('piggybacked outcomes may belong to another lane or to all lanes', async () => {
      const { reportOf, take, counted } = createPod(fleet)
      expect(await take(1, reportOf([[SUCCESS, 2]], 'b'))).toMatchObject({ view: { calls: 2 } })
      expect(await take(1, reportOf([[SUCCESS, 3]], ''))).toMatchObject({ view: { calls: 3 } })
      expect([await counted('a'), await counted('b'), await counted('')]).toEqual([0, 2, 3])
    })

    it('piggybacked failures open the breaker and watchers are notified', async () => {
      const { guard, reportOf, take } = createPod(fleet)
      const publishedViews: number[] = []
      const stop = fleet.store().breakers.watch({
        onView: (name, _, { kind }) => name === guard && publishedViews.push(kind),
        onGap() {},
      })
      expect(await take(1, reportOf([[FAILURE, 3]]))).toMatchObject({
        granted: 1,
        view: { kind: 1 },
      })
      await eventually(fleet, () => publishedViews.includes(1))
      stop()
    })

    if (fleet.kind === 'memory') return

    it('outcomes that cannot be counted cost no permit, and the reply has no breaker state', async () => {
      const { guard, reportOf, take } = createPod(fleet)
      const key = `sw1:{${guard}}:b:a`
      await fleet.send('HSET', key, 'not', 'a breaker')
      const reply = await take(2, reportOf([[SUCCESS, 1]]))
      expect(reply).toMatchObject({ granted: 2 })
      expect(reply.view).toBeUndefined()
      await fleet.send('DEL', key)
    })
  })
}
