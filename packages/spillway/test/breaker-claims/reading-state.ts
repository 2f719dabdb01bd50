/** Reading the breaker's state costs nothing. */
import { onEvent, type SpillwayEvent } from 'spillway'
import { type BreakerChange, type CircuitBreaker, createCircuitBreaker } from 'spillway/shared'
import { describe, expect } from 'vitest'
import { it, onTestFinished } from '../concurrent-tests.js'
import type { Fleet } from '../limit-claims/fleet.js'
import {
  counted,
  createDownstream,
  enter,
  enterTogether,
  eventually,
  halfOpen,
  LONG_MS,
  report,
  SHORT_MS,
  untilKnown,
  untilState,
} from './fleet.js'

export function claimReading(fleet: Fleet): void {
  describe('reading the breaker state', () => {
    it('state() and snapshot() take no probe permit', async () => {
      const pods = await halfOpen(fleet, { probes: 1, successes: 1, probeLeaseMs: LONG_MS }, 2)
      for (let attempt = 0; attempt < 100; attempt++) {
        for (const pod of pods) {
          expect(pod.state()).toBe('half-open')
          expect(pod.snapshot()).toMatchObject({ state: 'half-open', probes: 0 })
        }
      }
      expect(await enterTogether([pods[1]!])).toHaveLength(1)
    })

    it('state() and snapshot() count no call', async () => {
      const pod = createDownstream(fleet, {})
      const a = pod()
      await report(fleet, a, 'success', 3)
      for (let attempt = 0; attempt < 100; attempt++) {
        a.state()
        a.snapshot()
      }
      await fleet.until(a.flush())
      expect(await counted(fleet, pod)).toMatchObject({ calls: 3 })
    })

    it('snapshot() shows the known state and its age', async () => {
      const pod = createDownstream(fleet, { consecutiveFailures: 2, openMs: LONG_MS })
      const a = pod()
      await report(fleet, a, 'success', 2)
      await report(fleet, a, 'failure', 2)
      expect(a.snapshot()).toMatchObject({
        name: a.name,
        lane: 'default',
        state: 'open',
        calls: 4,
        failures: 2,
        slow: 0,
        consecutiveFailures: 2,
        probes: 0,
        successes: 0,
        selfIsolated: false,
      })
      expect(a.snapshot().ageMs).toBeLessThan(5_000)
    })
  })

  describe('breaker change events', () => {
    const watched = (pod: CircuitBreaker) => {
      const changes: BreakerChange[] = []
      pod.onChange((change) => changes.push(change))
      return changes
    }
    const path = (changes: readonly BreakerChange[]) => changes.map(({ from, to }) => [from, to])

    it('onChange fires on all pods, including those that made no call', async () => {
      const pod = createDownstream(fleet, {
        consecutiveFailures: 1,
        openMs: SHORT_MS,
        successes: 1,
      })
      const pods = [pod(), pod(), pod()]
      const watchedChanges = pods.map(watched)
      // The third pod only listens.
      await untilKnown(fleet, pods.slice(0, 2))
      await fleet.sleep(100)
      await report(fleet, pods[0]!, 'failure')
      await eventually(fleet, () => watchedChanges.every((changes) => changes.length === 2))
      const permit = await enter(pods[1]!)
      pods[1]!.record('success', permit)
      await eventually(fleet, () => watchedChanges.every((changes) => changes.length === 3))
      for (const changes of watchedChanges) {
        expect(path(changes)).toEqual([
          ['closed', 'open'],
          ['open', 'half-open'],
          ['half-open', 'closed'],
        ])
        expect(changes[0]).toMatchObject({ name: pods[0]!.name, lane: 'default' })
      }
    })

    it('every breaker transition emits an event', async () => {
      const pod = createDownstream(fleet, { openMs: LONG_MS })()
      await untilKnown(fleet, [pod])
      const events = recordEvents(pod)
      await pod.trip()
      await pod.isolate(LONG_MS)
      await pod.release()
      await pod.reset()
      expect(events.map(({ type }) => type)).toEqual([
        'breaker.opened',
        'breaker.isolated',
        'breaker.opened',
        'breaker.closed',
      ])
      expect(events[0]).toEqual({
        type: 'breaker.opened',
        name: pod.name,
        lane: 'default',
        from: 'closed',
      })
    })

    it('a stopped listener receives no change, and one that throws does not stop the others', async () => {
      const pod = createDownstream(fleet, { openMs: LONG_MS })()
      const gone: unknown[] = []
      pod.onChange(() => {
        throw new Error('faulty')
      })
      pod.onChange(() => Promise.reject(new Error('faulty, later')))
      pod.onChange((change) => gone.push(change))()
      const watchedChanges = watched(pod)
      await pod.trip()
      await pod.reset()
      expect(path(watchedChanges)).toEqual([
        ['closed', 'open'],
        ['open', 'closed'],
      ])
      expect(gone).toEqual([])
    })
  })

  describe('breaker in shadow mode', () => {
    it('breaker in shadow mode refuses no call and emits every refusal', async () => {
      const pod = createDownstream(fleet, {
        shadow: true,
        consecutiveFailures: 3,
        openMs: LONG_MS,
      })
      const [a, b] = [pod(), pod()]
      await untilKnown(fleet, [a, b])
      await report(fleet, a, 'failure', 3)
      await untilState(fleet, [a, b], 'open')
      const events = recordEvents(b)
      for (let call = 0; call < 10; call++) expect(await b.run(() => 'called')).toBe('called')
      expect(events).toEqual(
        Array.from({ length: 10 }, () => ({
          type: 'breaker.refused',
          name: b.name,
          lane: 'default',
          state: 'open',
          shadow: true,
        })),
      )
      await b.isolate(LONG_MS)
      expect(await b.run(() => 'called')).toBe('called')
    })

    it('breaker in shadow mode recovers normally, and calls that are not probes count nothing', async () => {
      const [a] = await halfOpen(fleet, {
        shadow: true,
        probes: 1,
        successes: 1,
        probeLeaseMs: LONG_MS,
      })
      const probe = await enter(a!)
      const others = await enterTogether([a!], 5)
      expect(probe.probe).toBe(true)
      expect(others.map(({ permit }) => permit.probe)).toEqual(Array(5).fill(false))
      for (const { permit } of others) a!.record('failure', permit)
      await fleet.until(a!.flush())
      expect(a!.state()).toBe('half-open')
      a!.record('success', probe)
      await fleet.until(a!.flush())
      expect(a!.state()).toBe('closed')
    })
  })

  describe('breaker refusal', () => {
    it('a refused call emits breaker.refused', async () => {
      const pod = createDownstream(fleet, { openMs: LONG_MS })()
      await pod.trip()
      const events = recordEvents(pod)
      await expect(pod.run(() => 'called')).rejects.toMatchObject({ code: 'CIRCUIT_OPEN' })
      expect(events).toEqual([
        {
          type: 'breaker.refused',
          name: pod.name,
          lane: 'default',
          state: 'open',
          shadow: false,
        },
      ])
    })
  })

  describe('breaker lanes', () => {
    it('each lane has its own breaker', async () => {
      const pod = createDownstream(fleet, { consecutiveFailures: 2, openMs: LONG_MS })
      const [a, b] = [pod(), pod()]
      await report(fleet, a, 'failure', 1, { lane: 'large' })
      await report(fleet, a, 'failure', 1, { lane: 'small' })
      expect(a.state({ lane: 'large' })).toBe('closed')
      await report(fleet, a, 'failure', 1, { lane: 'large' })
      expect(a.state({ lane: 'large' })).toBe('open')
      expect(a.state({ lane: 'small' })).toBe('closed')
      expect(a.state()).toBe('closed')
      await untilState(fleet, [b], 'open', { lane: 'large' })
      expect(await b.run(() => 'called', { lane: 'small' })).toBe('called')
      await expect(b.run(() => 'called', { lane: 'large' })).rejects.toMatchObject({
        code: 'CIRCUIT_OPEN',
        details: { lane: 'large' },
      })
    })

    it("with per: 'vendor' all lanes share one breaker", async () => {
      const pod = createDownstream(fleet, {
        per: 'vendor',
        consecutiveFailures: 2,
        openMs: LONG_MS,
      })
      const [a, b] = [pod(), pod()]
      await report(fleet, a, 'failure', 1, { lane: 'large' })
      await report(fleet, a, 'failure', 1, { lane: 'small' })
      await untilState(fleet, [a, b], 'open', { lane: 'huge' })
      await untilState(fleet, [a, b], 'open')
      await expect(b.run(() => 'called', { lane: 'medium' })).rejects.toMatchObject({
        code: 'CIRCUIT_OPEN',
      })
    })

    it("pods with per: 'vendor' ignore lane breakers of other pods", async () => {
      const pod = createDownstream(fleet, { consecutiveFailures: 1, openMs: LONG_MS })
      const [old, next] = [pod(), pod({ per: 'vendor' })]
      await untilKnown(fleet, [next])
      const changes: BreakerChange[] = []
      next.onChange((change) => changes.push(change))
      await report(fleet, old, 'failure', 1, { lane: 'large' })
      await fleet.sleep(100)
      expect(old.state({ lane: 'large' })).toBe('open')
      expect(await next.run(() => 'called', { lane: 'large' })).toBe('called')
      expect(changes).toEqual([])
    })

    it('breakers of different downstreams and lanes never share state, whatever their names', async () => {
      const options = { consecutiveFailures: 1, openMs: LONG_MS }
      const names = ['a', 'a:b', '{a}', 'a}b', 'ü', 'a b', '']
      const pods = names
        .filter((name) => name !== '')
        .map((name) => createDownstream(fleet, { ...options, name: `names-${name}` })())
      for (const pod of pods) {
        for (const lane of names) {
          expect((await pod.allow({ lane })).allowed, `${pod.name} ${lane}`).toBe(true)
          await report(fleet, pod, 'failure', 1, { lane })
          expect(pod.state({ lane })).toBe('open')
        }
      }
    })
  })

  it('a breaker without a store behaves the same for one process', async () => {
    /** Runs one complete cycle of a breaker, as its caller sees it. */
    const runCycle = async (pod: CircuitBreaker) => {
      const results: unknown[] = []
      pod.onChange(({ from, to }) => results.push([from, to]))
      const call = async (fn: () => unknown) => {
        const result = await pod.run(fn).catch(({ code, message }) => code ?? message)
        await fleet.until(pod.flush())
        results.push([result, pod.state()])
      }
      const fail = () => {
        throw new Error('failed')
      }
      for (let round = 0; round < 2; round++) {
        await call(() => 'fine')
        await call(fail)
        await call(fail)
        await call(() => 'fine')
        await untilState(fleet, [pod], 'half-open')
        await call(fail)
        await untilState(fleet, [pod], 'half-open')
        await call(() => 'fine')
        await call(() => 'fine')
      }
      return results
    }
    const options = { consecutiveFailures: 2, openMs: SHORT_MS, successes: 2 }
    const local = createCircuitBreaker({ name: 'local', clock: fleet.clock, ...options })
    onTestFinished(() => local.close())
    const [alone, shared] = [
      await runCycle(local),
      await runCycle(createDownstream(fleet, options)()),
    ]
    expect(shared).toEqual(alone)
    expect(alone).toContainEqual(['CIRCUIT_OPEN', 'open'])
  })

  it('close() of a breaker refuses later calls of its pod and does not affect other pods', async () => {
    const pod = createDownstream(fleet, { consecutiveFailures: 2, openMs: LONG_MS })
    const [a, b] = [pod(), pod()]
    await untilKnown(fleet, [b])
    a.record('failure')
    a.record('failure')
    await fleet.until(a.close())
    await untilState(fleet, [b], 'open')
    await expect(a.run(() => 'called')).rejects.toMatchObject({ code: 'SHUTTING_DOWN' })
    expect(await a.allow()).toMatchObject({ allowed: false, error: { code: 'SHUTTING_DOWN' } })
  })
}

/** Records the events about this pod's downstream from now on. */
function recordEvents(pod: CircuitBreaker): SpillwayEvent[] {
  const events: SpillwayEvent[] = []
  const stop = onEvent((event) => {
    if (event.name === pod.name) events.push(event)
  })
  onTestFinished(stop)
  return events
}
