import { describe, expect, it, onTestFinished } from 'vitest'
import { distantBreakers } from '../../../test/distant-breakers.js'
import { onEvent } from '../../core/events.js'
import { object, validate } from '../../core/options/checks.js'
import { createVirtualClock } from '../../testing/virtual-clock.js'
import type { BreakerChange } from './api.js'
import { BreakerLanes } from './breaker-lanes.js'
import { isBreakerPermit } from './lane/breaker-permit.js'
import { type BreakerPolicy, policyFields } from './options.js'

const MINUTE_MS = 60_000

function setup(policy: BreakerPolicy = {}) {
  const clock = createVirtualClock()
  const distant = distantBreakers(clock)
  let pods = 0
  const create = () =>
    new BreakerLanes({
      name: 'openai',
      store: distant.store,
      pod: `pod-${++pods}`,
      clock,
      policy: validate('policy', policy, object(policyFields)),
    })
  const record = async (
    pod: BreakerLanes,
    lane: string,
    ...outcomes: ('success' | 'failure')[]
  ) => {
    for (const outcome of outcomes) pod.record(lane, outcome)
    await clock.until(pod.flush())
  }
  const enter = async (pod: BreakerLanes, lane: string) =>
    clock.until(Promise.resolve(pod.enter(lane)))
  return { clock, distant, create, record, enter }
}

function recordEvents(): string[] {
  const events: string[] = []
  onTestFinished(onEvent(({ type }) => events.push(type)))
  return events
}

describe('self-isolated pod', () => {
  const isolated = async (policy: BreakerPolicy = {}) => {
    const all = setup({ quorum: 2, consecutiveFailures: 2, openMs: '10s', ...policy })
    const [sick, well] = [all.create(), all.create()]
    const changes: BreakerChange[] = []
    sick.onOwnChange((change) => changes.push(change))
    const fleetChanges: BreakerChange[] = []
    sick.onChange((change) => fleetChanges.push(change))
    await all.record(well, 'a', 'success')
    await all.record(sick, 'a', 'failure', 'failure')
    expect(sick.snapshot('a')).toMatchObject({ state: 'closed', selfIsolated: true })
    return { ...all, sick, well, changes, fleetChanges }
  }

  it('a self-isolated pod knows its refusals without a round trip', async () => {
    const { clock, sick, well } = await isolated()
    expect(sick.knownRefusal('a')).toMatchObject({ code: 'CIRCUIT_OPEN', scope: 'local' })
    expect(sick.knownRefusal('b')).toBeUndefined()
    expect(well.knownRefusal('a')).toBeUndefined()
    await clock.advance(10_000)
    // The pod may send a probe again.
    expect(sick.knownRefusal('a')).toBeUndefined()
  })

  it('a decision of the fleet replaces the self-isolation of a pod', async () => {
    const { clock, sick, well } = await isolated()
    await clock.until(well.command('a', { kind: 'isolate', holder: 'me', forUs: 1_000_000 }))
    await clock.advance(10)
    expect(sick.knownRefusal('a')).toMatchObject({
      scope: 'shared',
      details: { state: 'isolated' },
    })
  })

  it("self-isolation is reported to listeners of the pod's breaker and not of the fleet's", async () => {
    const { clock, sick, changes, fleetChanges } = await isolated()
    const of = { name: 'openai', lane: 'a' }
    expect(changes).toEqual([{ ...of, from: 'closed', to: 'open' }])
    await clock.advance(10_000)
    expect(changes).toHaveLength(2)
    expect(changes[1]).toEqual({ ...of, from: 'open', to: 'half-open' })
    expect(fleetChanges).toEqual([])
    const late: unknown[] = []
    const stop = sick.onOwnChange((change) => late.push(change))
    stop()
    await clock.until(sick.command('a', { kind: 'trip' }))
    expect(changes[2]).toEqual({ ...of, from: 'half-open', to: 'closed' })
    expect(late).toEqual([])
    expect(fleetChanges).toHaveLength(1)
  })
})

describe('breaker refusal events', () => {
  const open = async (policy: BreakerPolicy = {}) => {
    const all = setup({ openMs: '10s', ...policy })
    const pod = all.create()
    await all.clock.until(pod.command('a', { kind: 'trip' }))
    return { ...all, pod, events: recordEvents() }
  }

  it('looking up a known refusal emits no event', async () => {
    const { pod, events } = await open()
    expect(pod.knownRefusal('a')).toMatchObject({ code: 'CIRCUIT_OPEN' })
    expect(events).toEqual([])
  })

  it('a refusal emits one event, whether the call asked or was known to be refused', async () => {
    const { pod, events, enter } = await open()
    expect(pod.refuse('a')).toMatchObject({ code: 'CIRCUIT_OPEN' })
    expect(events).toEqual(['breaker.refused'])
    expect(isBreakerPermit(await enter(pod, 'a'))).toBe(false)
    expect(events).toHaveLength(2)
    expect(pod.refuse('b')).toBeUndefined()
    expect(events).toHaveLength(2)
  })

  it('in shadow mode a refusal emits one event when the call enters', async () => {
    const { pod, events, enter } = await open({ shadow: true })
    expect(pod.knownRefusal('a')).toBeUndefined()
    expect(pod.refuse('a')).toBeUndefined()
    expect(isBreakerPermit(await enter(pod, 'a'))).toBe(true)
    expect(events).toEqual(['breaker.refused'])
  })
})

describe('idle breaker lanes', () => {
  const lanesOf = (pod: BreakerLanes) => pod.snapshots().map(({ lane }) => lane)

  it.each([1, 2])('an idle lane is dropped after 5 minutes, quorum %i', async (quorum) => {
    const { clock, create, record, enter } = setup({ quorum })
    const pod = create()
    for (let lane = 0; lane < 100; lane++) await record(pod, `lane ${lane}`, 'success', 'failure')
    for (let minute = 0; minute < 6; minute++) {
      expect(lanesOf(pod)).toContain('lane 99')
      await enter(pod, 'used')
      await clock.advance(MINUTE_MS)
    }
    expect(lanesOf(pod)).toEqual(['used'])
  })

  it('a lane stays as long as one of its calls or probes runs', async () => {
    const { clock, create, enter } = setup({ openMs: '10s', maxProbeMs: '1h', successes: 1 })
    const pod = create()
    const call = await enter(pod, 'call')
    await clock.until(pod.command('probe', { kind: 'trip' }))
    await clock.advance(10_000)
    const probe = await enter(pod, 'probe')
    await clock.advance(20 * MINUTE_MS)
    expect(lanesOf(pod)).toEqual(['call', 'probe'])
    if (isBreakerPermit(call)) pod.exit(call, 'failure')
    if (isBreakerPermit(probe)) pod.exit(probe, 'success')
    await clock.until(pod.flush())
    expect(pod.snapshot('call')).toMatchObject({ failures: 1 })
    expect(pod.state('probe')).toBe('closed')
    await clock.advance(6 * MINUTE_MS)
    expect(lanesOf(pod)).toEqual([])
  })

  it('a lane stays while it is not closed or has unreported outcomes', async () => {
    const { clock, distant, create, record } = setup({ openMs: '1h', windowMs: '5m' })
    const pod = create()
    await clock.until(pod.command('open', { kind: 'trip' }))
    await record(pod, 'untold', 'success')
    distant.down = true
    await clock.advance(4 * MINUTE_MS)
    pod.record('untold', 'failure')
    await clock.advance(4 * MINUTE_MS)
    distant.down = false
    await clock.advance(MINUTE_MS)
    expect(lanesOf(pod)).toEqual(['open', 'untold'])
    expect(pod.snapshot('untold')).toMatchObject({ failures: 1 })
  })

  it('a dropped lane that is used again is counted, even if the store remembers its last report', async () => {
    const { clock, distant, create, record } = setup({ windowMs: '5m' })
    const pod = create()
    await record(pod, 'a', 'failure')
    await clock.advance(100)
    for (let time = 0; time < 3; time++) await record(pod, 'a', 'failure')
    await clock.advance(6 * MINUTE_MS)
    expect(lanesOf(pod)).toEqual([])
    await record(pod, 'a', 'failure')
    expect(pod.snapshot('a')).toMatchObject({ failures: 1 })
    // Its report numbers continue, whatever the store has forgotten.
    const numbers = distant.reports.map(({ sequence }) => sequence)
    expect(numbers).toEqual([...new Set(numbers)].sort((one, other) => one - other))
  })

  it('reports of a guard that was closed and created again in the same pod are counted', async () => {
    const { distant, clock, create, record } = setup()
    const before = create()
    await record(before, 'a', 'failure', 'failure')
    await clock.until(before.close())
    const { name } = before
    const policy = validate('policy', {}, object(policyFields))
    const after = new BreakerLanes({ name, store: distant.store, pod: 'pod-1', clock, policy })
    await record(after, 'a', 'failure')
    expect(after.snapshot('a')).toMatchObject({ failures: 3 })
  })

  it('a reset by another pod creates no lane, but a transition to open does and is announced', async () => {
    const { clock, create } = setup({ openMs: '10s' })
    const [one, other] = [create(), create()]
    const changes: string[] = []
    other.onChange(({ to }) => changes.push(to))
    await clock.until(one.command('a', { kind: 'reset' }))
    await clock.advance(10)
    expect(lanesOf(other)).toEqual([])
    await clock.until(one.command('a', { kind: 'trip' }))
    await clock.advance(10)
    await clock.until(one.command('a', { kind: 'reset' }))
    await clock.advance(10)
    expect(changes).toEqual(['open', 'closed'])
    await clock.until(one.command('b', { kind: 'isolate', holder: 'me', forUs: 1_000 }))
    await clock.advance(10)
    expect(changes.slice(2)).toEqual(['isolated', 'closed'])
  })
})
