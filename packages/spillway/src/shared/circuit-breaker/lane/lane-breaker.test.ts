import { describe, expect, it, vi } from 'vitest'
import { distantBreakers } from '../../../../test/distant-breakers.js'
import type { SpillwayError } from '../../../core/errors.js'
import { isThenable } from '../../../core/thenable.js'
import { type BreakerSpec, FAILURE, NOTHING, SUCCESS } from '../../../store/breaker-spec.js'
import { memoryStore } from '../../../store/memory/memory-store.js'
import type { BreakerStore, BreakerView, ProbeReply } from '../../../store/port.js'
import { createVirtualClock } from '../../../testing/virtual-clock.js'
import type { BreakerPermit } from '../api.js'
import { type BreakerEntry, isBreakerPermit } from './breaker-permit.js'
import { LaneBreaker, type LaneBreakerOptions } from './lane-breaker.js'

const OPEN_MS = 5_000
/** The number of calls at once doubles each second. */
const RAMP_MS = 6_000
const MAX_PROBE_MS = 2_000
const FLUSH_MS = 100

const SPEC: BreakerSpec = {
  consecutive: 5,
  failureRate: 0,
  slowRate: 0,
  windowUs: 10_000_000,
  windowCalls: 0,
  minimumCalls: 1,
  openUs: OPEN_MS * 1_000,
  openFactor: 1,
  maxOpenUs: 60_000_000,
  probes: 2,
  successes: 1,
  probeLeaseUs: 60_000_000,
  quorum: 1,
}

/** A lane of a local store. `createPod` returns the same lane of another pod, by default with the same store. */
function setup(own: Partial<LaneBreakerOptions> = {}) {
  const clock = createVirtualClock()
  const near = memoryStore({ clock })
  const { breakers } = near
  const report = vi.spyOn(breakers, 'report')
  const probe = vi.spyOn(breakers, 'probe')
  const distant = distantBreakers(clock, near).store.breakers
  const changes: string[] = []
  let pods = 0
  const createPod = (options: Partial<LaneBreakerOptions> = {}) =>
    new LaneBreaker({
      name: 'vendor',
      lane: 'model',
      pod: `pod-${++pods}`,
      store: breakers,
      clock,
      spec: SPEC,
      flushMs: FLUSH_MS,
      rampMs: RAMP_MS,
      maxProbeMs: MAX_PROBE_MS,
      timeoutMs: 60_000,
      scope: 'shared',
      onChange: (from, to) => changes.push(`${from} to ${to}`),
      ...own,
      ...options,
    })
  const lane = createPod()
  const reports = () => report.mock.calls.map(([request]) => request)
  /** The kinds of the reported outcomes, in order. */
  const outcomes = () => reports().flatMap((each) => each.outcomes.map(([kind]) => kind))
  /** Reads the state, as each round of the periodic synchronisation does. */
  const sync = () => {
    const { request, receive } = lane.stateRequest()
    for (const view of breakers.sync([request]) as BreakerView[]) receive(view)
  }
  const becomeHalfOpen = async (openMs = OPEN_MS) => {
    await lane.command({ kind: 'trip', forUs: openMs * 1_000 })
    await clock.advance(openMs)
    expect(lane.state).toBe('half-open')
  }
  /** Opens and closes the breaker, so that its ramp begins now. */
  const recover = async (openMs?: number) => {
    await becomeHalfOpen(openMs)
    lane.exit(admitted(lane), 'success')
    expect(lane.state).toBe('closed')
  }
  return {
    clock,
    breakers,
    distant,
    probe,
    lane,
    createPod,
    changes,
    reports,
    outcomes,
    sync,
    becomeHalfOpen,
    recover,
  }
}

function entered(lane: LaneBreaker): BreakerEntry {
  const entry = lane.enter()
  if (isThenable(entry)) throw new Error('the store was asked')
  return entry
}

/** The permit of a call that is admitted at once. */
function admitted(lane: LaneBreaker): BreakerPermit {
  const entry = entered(lane)
  if (!isBreakerPermit(entry)) throw entry
  return entry
}

/** The error of a call that is refused at once. */
function refused(lane: LaneBreaker): SpillwayError {
  const entry = entered(lane)
  if (isBreakerPermit(entry)) throw new Error('the call was admitted')
  return entry
}

function viewOf(lane: LaneBreaker, changed: Partial<BreakerView> = {}): BreakerView {
  return { ...lane.lastReceived!.view, ...changed }
}

/** Many calls of other pods are in the window, so this pod's successes wait before they are reported. */
function becomeBusy(lane: LaneBreaker): void {
  lane.receive(viewOf(lane, { calls: 1_000 }))
}

describe('the breaker of one lane', () => {
  describe('first state of a lane', () => {
    it('a lane of a local store knows its state when it is created', () => {
      const { lane } = setup()
      expect(lane.firstState).toBeUndefined()
      expect(lane.isClear).toBe(true)
      expect(admitted(lane)).toMatchObject({ lane: 'model', probe: false })
    })

    it('a call of a remote lane waits for the first state, and is refused if that is open', async () => {
      const { clock, lane, createPod, distant } = setup()
      await lane.command({ kind: 'trip' })
      const remote = createPod({ store: distant })
      expect(remote.firstState).toBeInstanceOf(Promise)
      const entry = remote.enter()
      expect(entry).toBeInstanceOf(Promise)
      expect(await clock.until(entry as Promise<BreakerEntry>)).toMatchObject({
        code: 'CIRCUIT_OPEN',
        details: { state: 'open' },
      })
      expect(remote.firstState).toBeUndefined()
    })

    it('a lane that waits for its first state has a request in flight and has received nothing', async () => {
      const { clock, createPod, distant } = setup()
      const remote = createPod({ store: distant })
      expect(remote.hasNothingInFlight).toBe(false)
      expect(remote.lastReceived).toBeUndefined()
      expect(remote.receivedMs).toBe(Number.NEGATIVE_INFINITY)
      await clock.until(remote.firstState!)
      expect(remote.hasNothingInFlight).toBe(true)
      await clock.advance(5)
      expect(remote.receivedMs).toBe(2)
      expect(remote.lastReceived).toMatchObject({ ref: remote.ref, view: { kind: 0 }, ageMs: 5 })
    })

    it('a lane whose store throws at once begins closed', () => {
      const { breakers, createPod } = setup()
      const sync = () => {
        throw new Error('down')
      }
      const lane = createPod({ store: { ...breakers, sync } })
      expect(lane.isClear).toBe(true)
      expect(admitted(lane)).toMatchObject({ probe: false, generation: 0 })
    })
  })

  describe('what a lane reports', () => {
    it('a call in flight counts at most as long as the window, and up to its timeout in a window of calls', async () => {
      const longest = async (spec: Partial<BreakerSpec>) => {
        const { clock, lane, reports } = setup({ spec: { ...SPEC, ...spec } })
        admitted(lane)
        await clock.advance(10)
        return reports().map(({ inFlight }) => inFlight)
      }
      // The oldest slice is counted whole, so a window of 10 s reaches up to 11 s back.
      expect(await longest({ windowUs: 10_000_000 })).toEqual([[1, 11_000_000]])
      expect(await longest({ windowUs: 0, windowCalls: 50 })).toEqual([[1, 60_000_000]])
    })

    it('a call that begins is reported after 10 ms, unless the window holds many calls', async () => {
      const { clock, lane, reports } = setup()
      admitted(lane)
      await clock.advance(9)
      expect(reports()).toEqual([])
      await clock.advance(1)
      expect(reports()).toMatchObject([{ inFlight: [1, 11_000_000], outcomes: [] }])
      const busy = setup()
      becomeBusy(busy.lane)
      admitted(busy.lane)
      await busy.clock.advance(1_000)
      expect(busy.reports()).toEqual([])
    })

    it('a call that began before the breaker opened is not reported after it has closed', async () => {
      const { lane, outcomes, recover } = setup()
      const old = admitted(lane)
      await recover()
      const current = admitted(lane)
      lane.exit(old, 'failure')
      expect(outcomes()).toEqual([])
      expect(lane.traffic.running).toBe(1)
      lane.exit(current, 'failure')
      expect(outcomes()).toEqual([FAILURE])
    })

    it('a call is not paired with an attempt that began before the last transition', async () => {
      const { lane, outcomes, recover } = setup()
      const old = admitted(lane)
      await recover()
      const [second, first] = [admitted(lane), admitted(lane)]
      lane.hedge(old, second)
      lane.hedge(first, old)
      lane.exit(second, 'failure')
      lane.exit(first, 'failure')
      expect(outcomes()).toEqual([FAILURE, FAILURE])
    })

    it('permits of probes and of earlier generations are not changed by retries, answers and hedges', async () => {
      const { lane, becomeHalfOpen } = setup()
      const old = admitted(lane)
      await becomeHalfOpen()
      const [probe, other] = [admitted(lane), admitted(lane)]
      const before = structuredClone([old, probe, other])
      for (const permit of [old, probe]) {
        lane.markRepeated(permit)
        lane.markAnswered(permit)
        lane.hedge(permit, other)
      }
      expect(structuredClone([old, probe, other])).toEqual(before)
    })

    it('an outcome without a permit is reported while the breaker is closed, and dropped while it is open', async () => {
      const { lane, reports, outcomes } = setup()
      lane.record('failure')
      expect(outcomes()).toEqual([FAILURE])
      await lane.command({ kind: 'trip' })
      lane.record('failure')
      expect(reports()).toHaveLength(1)
    })

    it('a success that waits is piggybacked with the address of its lane and pod', async () => {
      const { clock, lane, reports } = setup()
      becomeBusy(lane)
      expect(lane.piggybackReport()).toBeUndefined()
      lane.exit(admitted(lane), 'success')
      await clock.advance(FLUSH_MS / 2)
      const pending = lane.piggybackReport()
      expect(pending?.report).toMatchObject({ ...lane.ref, pod: 'pod-1', outcomes: [[SUCCESS, 1]] })
      expect(lane.hasNothingInFlight).toBe(false)
      pending?.arrived(viewOf(lane, { calls: 1_001 }))
      expect(lane.hasNothingInFlight).toBe(true)
      expect(lane.snapshot().calls).toBe(1_001)
      await clock.advance(10_000)
      expect(reports()).toEqual([])
    })

    it('after close() a lane still reports a late failure, but sets no timer for the end of its open time', async () => {
      const { clock, lane, outcomes, changes } = setup({ spec: { ...SPEC, consecutive: 1 } })
      const late = admitted(lane)
      await lane.close()
      lane.exit(late, 'failure')
      expect(outcomes()).toEqual([FAILURE])
      expect(changes).toEqual(['closed to open'])
      await clock.advance(10 * OPEN_MS)
      expect(changes).toEqual(['closed to open'])
    })
  })

  describe('ramp of a lane', () => {
    it('a lane is clear, idle and in sync again exactly when its ramp ends', async () => {
      const { clock, lane, sync, recover } = setup()
      await recover()
      await clock.advance(RAMP_MS - 1)
      sync()
      expect([lane.isClear, lane.isIdle, lane.isInSync(0)]).toEqual([false, false, false])
      await clock.advance(1)
      expect(lane.isIdle).toBe(true)
      sync()
      expect(lane.isClear).toBe(true)
      expect(lane.isInSync(clock.now())).toBe(true)
      expect(lane.isInSync(clock.now() + 1)).toBe(false)
    })

    it('the calls that may start are limited from the closing to the end of the ramp', async () => {
      const { clock, lane, recover } = setup()
      expect(lane.startable).toBe(Infinity)
      await recover()
      expect(lane.startable).toBe(2)
      admitted(lane)
      expect(lane.startable).toBe(1)
      await clock.advance(1_000)
      expect(lane.startable).toBe(3)
      await clock.advance(RAMP_MS - 1_001)
      expect(lane.startable).toBe(126)
      await clock.advance(1)
      expect(lane.startable).toBe(Infinity)
    })

    it('a breaker that opens during its ramp does not limit the calls that may start', async () => {
      const { lane, recover } = setup()
      await recover()
      await lane.command({ kind: 'trip' })
      expect(lane.startable).toBe(Infinity)
    })

    it('a ramp begins with a quarter of the calls before the breaker opened, however long it was open', async () => {
      const { lane, recover } = setup()
      for (let call = 0; call < 40; call++) admitted(lane)
      await recover(120_000)
      expect(lane.startable).toBe(10)
    })

    it('the refusal during a ramp says that the circuit admits calls gradually', async () => {
      const { lane, recover } = setup()
      await recover()
      admitted(lane)
      admitted(lane)
      const refusal = refused(lane)
      expect(refusal.details).toMatchObject({ state: 'closed' })
      expect(refusal.message).toContain('has just closed and admits calls gradually')
    })
  })

  describe('probes of a lane', () => {
    it('a probe that runs for maxProbeMs returns its permit and counts as nothing', async () => {
      const { clock, lane, reports, becomeHalfOpen } = setup()
      await becomeHalfOpen()
      expect(lane.hasProbes).toBe(false)
      const { probeId } = admitted(lane)
      expect(lane.hasProbes).toBe(true)
      await clock.advance(MAX_PROBE_MS - 1)
      expect(reports()).toEqual([])
      await clock.advance(1)
      expect(reports()).toMatchObject([{ probes: [[probeId, NOTHING]] }])
      expect(lane.hasProbes).toBe(false)
      expect(lane.snapshot()).toMatchObject({ state: 'half-open', probes: 0, successes: 0 })
    })

    it('while all probes run, the store is asked every 20 ms at most, whatever view arrives', async () => {
      const { clock, lane, probe, createPod, becomeHalfOpen } = setup()
      await becomeHalfOpen()
      const other = createPod()
      admitted(other)
      admitted(other)
      probe.mockClear()
      const refusal = refused(lane)
      expect(refusal.details).toMatchObject({ state: 'half-open' })
      expect(refusal.message).toContain('half-open and all its probes are running')
      await clock.advance(19)
      const { view } = other.lastReceived!
      lane.receive({ ...view, nowUs: view.nowUs + 19_000 })
      refused(lane)
      expect(probe).toHaveBeenCalledTimes(1)
      await clock.advance(1)
      refused(lane)
      expect(probe).toHaveBeenCalledTimes(2)
    })

    it('a call whose request for a probe fails is refused as by a half-open breaker', async () => {
      const { breakers, createPod, becomeHalfOpen } = setup()
      await becomeHalfOpen()
      const failing: BreakerStore = { ...breakers, probe: () => Promise.reject(new Error('down')) }
      const refusal = (await createPod({ store: failing }).enter()) as SpillwayError
      expect(refusal.details).toMatchObject({ state: 'half-open' })
      expect(refusal.message).toContain('the store did not answer the request for a probe')
    })

    it('a call asks for a probe once, although the breaker is half-open again when the reply arrives', async () => {
      const { clock, breakers, createPod, becomeHalfOpen } = setup()
      await becomeHalfOpen()
      let reply: (reply: ProbeReply) => void = () => {}
      const probe = vi.fn(() => new Promise<ProbeReply>((resolve) => (reply = resolve)))
      const lane = createPod({ store: { ...breakers, probe } })
      const entry = lane.enter()
      const view = viewOf(lane)
      lane.receive({ ...view, nowUs: view.nowUs + 2 })
      reply({ granted: 0, view: { ...view, nowUs: view.nowUs + 1, kind: 0 } })
      await clock.settle()
      expect(probe).toHaveBeenCalledTimes(1)
      expect(await entry).toMatchObject({ code: 'CIRCUIT_OPEN', details: { state: 'half-open' } })
    })
  })

  describe('calls of a lane that the job queue grants', () => {
    it('granted probes get the first of the offered ids, and run until they end', async () => {
      const { lane, reports, becomeHalfOpen } = setup()
      await becomeHalfOpen()
      const part = lane.requestPart()
      expect(part.ref).toBe(lane.ref)
      expect(new Set(part.probes).size).toBe(SPEC.probes)
      const permits = part.passed(viewOf(lane, { kind: 2, generation: 7 }), 1, true)
      expect(permits).toEqual([
        { lane: 'model', generation: 7, probe: true, probeId: part.probes[0] },
      ])
      expect(lane.stateRequest().request.renew).toEqual([part.probes[0]])
      lane.exit(permits[0]!, 'success')
      expect(reports()).toMatchObject([{ probes: [[part.probes[0], SUCCESS]] }])
    })

    it('granted calls count like those that entered, in the generation that came with them', () => {
      const { lane } = setup()
      const view = viewOf(lane, { generation: 7, version: 7, calls: 1_000 })
      const permits = lane.requestPart().passed(view, 3, false)
      expect(permits).toHaveLength(3)
      expect(permits).toMatchObject(Array(3).fill({ lane: 'model', generation: 7, probe: false }))
      expect(lane.traffic.running).toBe(3)
      expect(lane.snapshot().calls).toBe(1_000)
    })

    it('calls granted in a generation that has ended meanwhile are not counted', async () => {
      const { clock, lane, outcomes } = setup()
      const part = lane.requestPart()
      const view = viewOf(lane)
      await clock.advance(1)
      await lane.command({ kind: 'trip' })
      await lane.command({ kind: 'reset' })
      const [permit] = part.passed(view, 1, false)
      expect(permit).toMatchObject({ lane: 'model', generation: 0, probe: false })
      expect(lane.traffic.running).toBe(0)
      lane.exit(permit!, 'failure')
      expect(outcomes()).toEqual([])
    })
  })

  it('tripFound() opens the breaker for the given time, unless its state has changed unnoticed', async () => {
    const { lane, createPod } = setup()
    const late = createPod()
    await lane.tripFound(30_000_000)
    expect(lane.snapshot()).toMatchObject({ state: 'open', untilMs: 30_000 })
    await lane.command({ kind: 'reset' })
    await late.tripFound(30_000_000)
    expect(late.state).toBe('closed')
  })

  it('a snapshot shows when an open or isolated lane changes by itself', async () => {
    const { clock, lane } = setup()
    expect(lane.snapshot()).toMatchObject({ state: 'closed', untilMs: undefined })
    await lane.command({ kind: 'trip' })
    await clock.advance(1_000)
    expect(lane.snapshot()).toMatchObject({ state: 'open', untilMs: OPEN_MS - 1_000 })
    await lane.command({ kind: 'isolate', holder: 'operator', forUs: 9_000_000 })
    expect(lane.snapshot()).toMatchObject({ state: 'isolated', untilMs: 9_000 })
  })
})
