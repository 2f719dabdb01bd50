/** One run of a scenario from beginning to end, with or without guards. */
import type { GuardOptions } from 'spillway'
import { createRandom, type PodTools } from 'spillway/testing'
import { type BreakerState, RunRecord } from '../measure/run-record.js'
import type { CheckedScenario } from '../scenario/read-scenario.js'
import { Crowd } from './crowd.js'
import { Fleet, type FleetPod } from './fleet.js'
import { GUARD_NAME, GuardedPod } from './guarded-pod.js'
import { NaivePod } from './naive-pod.js'
import { VendorLink } from './vendor-link.js'
import { VendorSide } from './vendor-side.js'

export type RunKind = 'spillway' | 'naive'

export interface RunOptions {
  readonly scenario: CheckedScenario
  readonly kind: RunKind
  readonly seed: number
  readonly onProgress: (part: number) => void
}

const SLICES = 50
const LONGEST_END_MS = 60_000
/** The machine's own load is left out, so that runs are reproducible. */
const IDLE_SENSORS = {
  cpu: () => 0,
  memory: () => 0,
  loopUtilization: () => 0,
  loopDelayMs: () => 0,
}
const STATES: Record<0 | 1 | 2, BreakerState> = { 0: 'closed', 1: 'open', 2: 'half-open' }

export async function run({ scenario, kind, seed, onProgress }: RunOptions): Promise<RunRecord> {
  const { durationMs, clients } = scenario
  const record = new RunRecord(
    durationMs,
    clients.map(({ name }) => name),
  )
  const fleet = new Fleet({ scenario, seed, create: createPod })
  const { clock } = fleet.harness
  const vendor = new VendorSide(scenario.vendor, clock, createRandom(seed * 31 + 7), record)
  const guard = withoutSensors(scenario.guard)

  function createPod(tools: PodTools, { harness }: Fleet): FleetPod {
    const link = new VendorLink(vendor, harness.clock)
    if (kind === 'naive') return { link, pod: new NaivePod(tools, scenario.naive, link) }
    const store = scenario.store === 'memory' ? harness.store : tools.store
    return { link, pod: new GuardedPod(tools, store, guard, link, scenario.pods) }
  }

  const unwatch = kind === 'spillway' ? watchBreaker(fleet, vendor, record) : () => {}
  for (let each = 0; each < scenario.pods; each++) fleet.start()
  const crowds = clients.map((client, index) => {
    const random = createRandom(seed * 101 + index)
    const send = fleet.send.bind(fleet)
    return new Crowd({ client, clock, random, record, untilMs: durationMs, send })
  })
  for (const crowd of crowds) crowd.begin()
  plan(scenario, fleet, vendor)
  sample(fleet, vendor, record)
  for (let slice = 0; slice < SLICES; slice++) {
    onProgress(slice / SLICES)
    await fleet.harness.run(durationMs / SLICES)
  }
  // Pending requests get their result.
  for (let ms = 0; ms < LONGEST_END_MS && crowds.some(({ open }) => open > 0); ms += 1_000) {
    await fleet.harness.run(1_000)
  }
  vendor.sample(record.stretches)
  unwatch()
  await fleet.close()
  vendor.finish()
  onProgress(1)
  return record
}

function withoutSensors(guard: GuardOptions): GuardOptions {
  return guard.shed === undefined
    ? guard
    : { ...guard, shed: { ...guard.shed, sensors: IDLE_SENSORS } }
}

/** Schedules all timed events. */
function plan(scenario: CheckedScenario, fleet: Fleet, vendor: VendorSide): void {
  const { clock } = fleet.harness
  for (const event of scenario.events) {
    clock.schedule(event.atMs, () => {
      if (event.kind === 'vendor') vendor.apply(event.vendor)
      else if (event.kind === 'store') fleet.applyToStore(event.store, event.pod)
      else if (event.kind === 'pods') fleet.applyToPods(event.pods)
      else {
        const link = fleet.linkOf(event.pod)
        if (link !== undefined) link.state = event.calls
      }
    })
  }
  if (scenario.autoscale !== undefined) autoscale(scenario.autoscale, scenario.durationMs, fleet)
}

function autoscale(
  { min, max, perPod, everyMs, startMs }: NonNullable<CheckedScenario['autoscale']>,
  durationMs: number,
  fleet: Fleet,
): void {
  const { clock } = fleet.harness
  let coming = 0
  const look = () => {
    if (clock.now() >= durationMs) return
    clock.schedule(everyMs, look)
    const wanted = Math.min(max, Math.max(min, Math.ceil(fleet.running / perPod)))
    for (; fleet.size + coming < wanted; coming++) {
      clock.schedule(startMs, () => {
        coming--
        fleet.start()
      })
    }
    // One at a time, as autoscalers do.
    if (fleet.size > wanted && coming === 0) fleet.stop()
  }
  clock.schedule(everyMs, look)
}

function sample(fleet: Fleet, vendor: VendorSide, record: RunRecord): void {
  const { clock } = fleet.harness
  let at = 0
  const look = () => {
    record.pods[at] = fleet.size
    record.waiting[at] = fleet.waiting
    record.storeCommands[at] = fleet.commandsSince()
    vendor.sample(at)
    if (++at < record.stretches) clock.schedule(record.stretchMs, look)
  }
  // Just before the interval ends, so that the values belong to it.
  clock.schedule(record.stretchMs * 0.999, look)
}

/** Reads the breaker's state from the store, also after the store has lost its data. */
function watchBreaker(fleet: Fleet, vendor: VendorSide, record: RunRecord): () => void {
  const { clock } = fleet.harness
  let watched = fleet.harness.store
  let stop = watch()
  let timer = clock.schedule(record.stretchMs, look)

  function watch() {
    return watched.breakers.watch({
      onView(guard, _, { kind }) {
        if (guard === GUARD_NAME) note(STATES[kind])
      },
      onGap() {},
    })
  }
  function note(state: BreakerState) {
    if ((record.breaker.at(-1)?.state ?? 'closed') === state) return
    if (state === 'open') record.opens++
    record.breaker.push({ atMs: clock.now(), state })
    vendor.noteBreakerState(state)
  }
  function look() {
    if (fleet.harness.store !== watched) {
      stop()
      watched = fleet.harness.store
      note('closed')
      stop = watch()
    }
    timer = clock.schedule(record.stretchMs, look)
    timer.unref()
  }
  return () => {
    timer.cancel()
    stop()
  }
}
