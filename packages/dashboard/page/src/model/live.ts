/**
 * State of the page, as signals. Messages are buffered and applied together at the next frame. While the page is
 * paused they are buffered only.
 */
import { batch, computed, signal } from '@preact/signals'
import type {
  ActNote,
  BreakerTick,
  DemoState,
  Fleet,
  GuardsTick,
  GuardTick,
  Hello,
  LaneTick,
  QueuesTick,
  Transition,
} from '../wire'
import { DecisionLog } from './decision-log'
import type { FeedState, Message } from './feed'
import { totalsOf } from './fleet-totals'
import { TwoTracks } from './history'
import { RateTracker } from './rates'

export const KNOWN_WIRE = 1
const MOST_NOTES = 20
/** A hidden page draws no frames, so a timer applies the buffered messages. */
const HIDDEN_MS = 500

export const feedState = signal<FeedState>({ kind: 'connecting' })
export const hello = signal<Hello | undefined>(undefined)
export const fleet = signal<Fleet | undefined>(undefined)
export const guardsTick = signal<GuardsTick | undefined>(undefined)
export const queuesTick = signal<QueuesTick | undefined>(undefined)
export const demo = signal<DemoState | undefined>(undefined)
export const acts = signal<readonly ActNote[]>([])
/** The state of the store is shown even while everything else is paused. */
export const store = signal<Fleet['store'] | undefined>(undefined)
/** Time of the shown data while paused; undefined while live. */
export const pausedAt = signal<number | undefined>(undefined)
/** Incremented when there is more to show. */
export const historyVersion = signal(0)
export const decisionsVersion = signal(0)
/** Decisions per second, including those that the page does not have. */
export const decisionRate = signal(0)

export const rates = new RateTracker()
export const decisions = new DecisionLog()

const POD = ''
let tracks = new Map<string, TwoTracks>()
/** Offset of the gateway's clock from that of this computer. */
let skewMs = 0

export const guardCards = computed(() => hello.value?.guards ?? [])
export const guardByName = computed(
  () => new Map((guardsTick.value?.guards ?? []).map((each) => [each.name, each])),
)
/** Without a connection the last data stays on the page, marked as old. */
export const isStale = computed(() => feedState.value.kind === 'lost')

/** The history of a guard, or of this pod. */
export function tracksOf(guard: string | undefined): TwoTracks | undefined {
  return tracks.get(guard ?? POD)
}

/** The gateway's time of day. */
export function serverNow(): number {
  return Date.now() + skewMs
}

/** Without access the page hides all data, including data received before. */
export function forgetAll(): void {
  noted = nothingNoted()
  tracks = new Map()
  rates.clear()
  decisions.clear()
  batch(() => {
    for (const each of [hello, fleet, guardsTick, queuesTick, demo, store, pausedAt]) {
      each.value = undefined
    }
    acts.value = []
    decisionsVersion.value++
  })
}

interface Noted {
  hello?: Hello
  fleet?: Fleet
  guards?: GuardsTick
  jobQueues?: QueuesTick
  demo?: DemoState
  decisions: boolean
  history: boolean
  acts: ActNote[]
}

const nothingNoted = (): Noted => ({ decisions: false, history: false, acts: [] })
let noted = nothingNoted()
let scheduled = false

export function take(message: Message): void {
  note(message)
  if (scheduled) return
  scheduled = true
  if (document.hidden) setTimeout(show, HIDDEN_MS)
  else requestAnimationFrame(show)
}

function note(message: Message): void {
  switch (message.name) {
    case 'hello':
      return noteHello(message.data)
    case 'fleet':
      noted.fleet = message.data
      return notePod(message.data)
    case 'guards':
      noted.guards = message.data
      rates.see(message.data)
      return noteGuards(message.data)
    case 'jobQueues':
      noted.jobQueues = message.data
      return
    case 'demo':
      noted.demo = message.data
      return
    case 'decisions':
      decisions.add(message.data.records)
      noteSeen(message.data.seen)
      noted.decisions = true
      return
    case 'transition':
      return noteTransition(message.data)
    case 'act':
      noted.acts.push(message.data)
      return
    case 'history': {
      const { guard } = message.data
      tracks.get(guard ?? POD)?.load(message.data)
      noted.history = true
      return
    }
  }
}

function noteHello(data: Hello): void {
  const before = noted.hello ?? hello.peek()
  skewMs = data.at - Date.now()
  // The server process was replaced, so its counters and ids start again.
  if (before !== undefined && before.boot !== data.boot) {
    rates.clear()
    decisions.clear()
    noted.decisions = true
  }
  const names = [POD, ...data.guards.map(({ name }) => name)]
  tracks = new Map(names.map((name) => [name, tracks.get(name) ?? new TwoTracks(data.keeps)]))
  noted.hello = data
  if (data.demo !== undefined) noted.demo = data.demo
}

function notePod({ at, pods, store: { degraded } }: Fleet): void {
  const own = pods[0]
  const all = totalsOf(pods)
  tracks.get(POD)?.set(at, {
    pressure: own?.pressure,
    loopMs: own?.loopMs,
    inFlight: own?.inFlight,
    waiting: own?.waiting,
    pods: pods.length,
    degraded: degraded ? 1 : 0,
    fleetCalls: all.calls,
    fleetRefused: all.refused,
    fleetInFlight: all.inFlight,
    fleetWaiting: all.waiting,
  })
  noted.history = true
}

function noteGuards({ at, sinceMs, guards }: GuardsTick): void {
  const a = (count: number) => (count * 1_000) / Math.max(1, sinceMs)
  for (const { name, flow, slots, queue, latency } of guards) {
    tracks.get(name)?.set(at, {
      calls: a(flow.calls),
      refused: a(flow.refused.reduce((sum, { count }) => sum + count, 0)),
      failures: a(flow.outcomes.failure + flow.outcomes.slow),
      throttled: a(flow.outcomes.throttled),
      active: slots.active,
      waiting: queue.waiting,
      p50Ms: latency?.p50Ms,
      p99Ms: latency?.p99Ms,
    })
  }
  noted.history = true
}

/** Shown at the next frame, before the next tick. */
function noteTransition(transition: Transition): void {
  const tick = noted.guards ?? guardsTick.peek()
  if (tick === undefined) return
  noted.guards = {
    ...tick,
    guards: tick.guards.map((guard) => {
      return guard.name === transition.guard ? withTransition(guard, transition) : guard
    }),
  }
}

function withTransition(guard: GuardTick, transition: Transition): GuardTick {
  const known = guard.lanes.find(({ lane }) => lane === transition.lane)
  const { untilMs: _, ...before } = known?.breaker ?? NO_CALLS
  const timeline = [...before.timeline, transition]
  const lane: LaneTick = {
    ...(known ?? { lane: transition.lane, waiting: 0, limits: [] }),
    breaker: { ...before, state: transition.to, timeline },
  }
  // A lane that only other pods have used so far.
  if (known === undefined) return { ...guard, lanes: [...guard.lanes, lane] }
  return { ...guard, lanes: guard.lanes.map((each) => (each === known ? lane : each)) }
}

const NO_CALLS: BreakerTick = {
  state: 'closed',
  calls: 0,
  failures: 0,
  slow: 0,
  consecutiveFailures: 0,
  probes: 0,
  successes: 0,
  selfIsolated: false,
  ageMs: 0,
  timeline: [],
}

let seen = 0
let seenFrom = 0
function noteSeen(count: number): void {
  seen += count
  const now = performance.now()
  if (seenFrom === 0) seenFrom = now
  if (now - seenFrom < 1_000) return
  decisionRate.value = (seen * 1_000) / (now - seenFrom)
  seen = 0
  seenFrom = now
}

function show(): void {
  scheduled = false
  const latest = noted
  batch(() => {
    if (latest.hello !== undefined) hello.value = latest.hello
    if (latest.demo !== undefined) demo.value = latest.demo
    if (latest.fleet !== undefined) store.value = latest.fleet.store
    if (latest.acts.length > 0) {
      acts.value = withNotes(acts.value, latest.acts)
      latest.acts = []
    }
    if (pausedAt.value !== undefined) return
    if (latest.fleet !== undefined) fleet.value = latest.fleet
    if (latest.guards !== undefined) guardsTick.value = latest.guards
    if (latest.jobQueues !== undefined) queuesTick.value = latest.jobQueues
    if (latest.history) historyVersion.value++
    if (latest.decisions) decisionsVersion.value++
    noted = nothingNoted()
  })
}

/** The newest first. A reader that reconnects receives the latest actions again. */
function withNotes(known: readonly ActNote[], more: readonly ActNote[]): ActNote[] {
  const keyOf = ({ at, pod, act, on, did }: ActNote) => JSON.stringify([at, pod, act, on, did])
  const byKey = new Map(known.map((each) => [keyOf(each), each]))
  const fresh: ActNote[] = []
  for (const each of more) {
    if (byKey.has(keyOf(each))) continue
    byKey.set(keyOf(each), each)
    fresh.unshift(each)
  }
  return [...fresh, ...known].slice(0, MOST_NOTES)
}

export function togglePause(): void {
  if (pausedAt.value === undefined) {
    pausedAt.value = serverNow()
  } else {
    pausedAt.value = undefined
    show()
  }
}
