/**
 * What the dashboard's page is told, and what it may ask for. Types only: the page and its server compile
 * against the same file.
 *
 * `GET events` is a stream of server-sent events. The name of each is a key of `Messages`, its data the value
 * as JSON. The first is always `hello`. Every event has an id, of no meaning to a page: a reader that comes back
 * with `Last-Event-ID` of the same process gets what it missed, if that is still known, and in any case `hello` and all
 * that stands now. A reader that is too slow loses ticks and decisions, never the last word on how things stand.
 *
 * Names (guards, lanes, users, pods, queues, tenants) are data that anybody may have chosen: text, at most
 * `MostText` characters, never markup. Points in time are milliseconds of the day's clock (`Date.now()`) and
 * end in `At`; durations end in `Ms`. Nothing here is a secret, a key, or a part of a body.
 */
import type { ErrorCode, Scope, Stage } from '../../core/errors.js'
import type { Outcome } from '../../core/outcome.js'
import type { Priority } from '../../core/priority.js'
import type { StageRow } from '../../guard/order.js'
import type { BreakerStateName } from '../../shared/circuit-breaker/api.js'

/** From the most important down: critical, high, normal, low. */
export type ByPriority = [number, number, number, number]

/** Of this wire format; a page that knows another one asks to be loaded again. */
export type WireVersion = 1

/** So many characters of any text, the last one an ellipsis if there were more. */
export type MostText = 200

/** In place of a lane's name: what holds for all lanes. An act on it is one on all lanes. */
export type EveryLane = '(all lanes)'

export interface Messages {
  /** First, and again whenever a guard comes or goes. */
  hello: Hello
  /** After `hello`: one message for the pod, two for each guard. */
  history: History
  /** Once a second. */
  fleet: Fleet
  /** Once a second: this pod's guards, with the shared state that they go by. */
  guards: GuardsTick
  /** Up to ten times a second, if there are any. */
  decisions: Decisions
  /** At once, whichever pod caused it. Also in the next `guards`, as part of the timeline. */
  transition: Transition
  /** Once a second, if there are queues. */
  queues: QueuesTick
  /** At once: somebody has acted, or tried to, on this pod or (as far as told) another. */
  act: ActNote
  /** A built-in load or a broken vendor was switched, by whomever. Only where `hello.demo` is there. */
  demo: DemoState
}

export interface Hello {
  wire: WireVersion
  /** Of this process: another one, other ids. */
  boot: string
  at: number
  /** This pod, and the release it runs. */
  pod: string
  version: string
  /** The ten stages, in order. */
  stages: readonly StageRow[]
  guards: GuardCard[]
  queues: string[]
  /**
   * `token`: acts need `Authorization: Bearer …`; `open`: not from where this reader is; `off`: nobody may act
   * from here, because no token is configured and this is not the same machine.
   */
  acts: 'token' | 'open' | 'off'
  /** What may be asked for; an older server, or one without a store to act on, knows fewer. */
  may: Act['act'][]
  demo: DemoState | undefined
  /** How much history there is at each step. */
  keeps: { fineStepMs: number; finePoints: number; coarseStepMs: number; coarsePoints: number }
}

/** What about a guard's options matters for drawing it. Absent: that stage is off. */
export interface GuardCard {
  name: string
  /** The stages that are on. */
  on: Stage[]
  shed?: { maxQueue?: number; maxInFlight?: number; tiers?: Record<string, number> }
  /** `limit` absent: not everybody's is the same, `by` has those that are limited. */
  userLimits?: { per: string; limit?: number; by?: Record<string, number>; windowMs: number }[]
  queue?: { size: number; timeoutMs: number }
  breaker?: {
    failureRate?: number
    slowRate?: number
    consecutiveFailures?: number
    minimumCalls?: number
    windowMs?: number
    openMs: number
    probes: number
    successes: number
    quorum?: number
    per: 'lane' | 'vendor'
    shadow: boolean
  }
  limits?: { id: string; unit: string; limit: number; windowMs: number; per: 'lane' | 'vendor' }[]
  pace?: { limit: number; windowMs: number }
  concurrency?: { limit: number; adaptive: boolean }
  timeout?: { callMs?: number; firstByteMs?: number; idleMs?: number }
  retry?: { attempts: number; budget?: number }
  fallbacks: string[]
}

/**
 * `memory`: for this process alone, by choice; `starting`: not heard of yet; `shared`: it answers; `away`: it does
 * not; `apart`: it is back, and not trusted for a window; `off`: switched off by SPILLWAY_SHARED=off. Of `away`,
 * `apart` and `off` outage rules are in force: degraded.
 */
export type StoreWord = 'memory' | 'starting' | 'shared' | 'away' | 'apart' | 'off'

export interface Fleet {
  at: number
  store: {
    status: StoreWord
    degraded: boolean
    sinceAt: number
    /** In words, for people; of each guard that has something to say. */
    problems: string[]
  }
  /**
   * All guards that any pod has, by name; `PodRow.guards` refers to them by their place. The order may change
   * from tick to tick.
   */
  names: string[]
  /** This pod first, the others by name. While the store is away: as last heard, `ageMs` says when. */
  pods: PodRow[]
  /** More than these are alive. */
  podsLeftOut: number
}

export interface PodRow {
  pod: string
  /** Since its last word. Over 2,000 it is late, over 5,000 it is gone. */
  ageMs: number
  /** `unknown`: it runs a release that says nothing of itself. */
  state: 'up' | 'draining' | 'asked' | 'unknown'
  version: string
  upMs: number
  /** The highest of its guards' signals, 1 is the limit; and which one. Absent: nothing sheds. */
  pressure?: number
  pressureBy?: string
  /** Of its event loop: the mean delay of the last second, and what part of the time it was busy, 0 to 1. */
  loopMs: number
  loopBusy: number
  memoryMb: number
  inFlight: number
  waiting: number
  store: StoreWord
  /** By guard: what this pod did a second, as it says. */
  guards: PodGuardRow[]
}

/**
 * [place in `names`, calls a second, refused a second, running, waiting, its breaker as this pod sees it, decided a
 * second]. Of several lanes the worst breaker. Decided: refused, or begun; whoever waited was decided later than it came.
 */
export type PodGuardRow = [
  guard: number,
  calls: number,
  refused: number,
  active: number,
  waiting: number,
  breaker: BreakerCode,
  decided: number,
]

/** 0 closed, 1 half-open, 2 open, 3 isolated, 4 this pod isolates itself, -1 there is none, or it was never used. */
export type BreakerCode = -1 | 0 | 1 | 2 | 3 | 4

export interface GuardsTick {
  at: number
  /** What counts below are since; about a second. */
  sinceMs: number
  guards: GuardTick[]
}

export interface GuardTick {
  name: string
  /** Of all lanes together. */
  flow: Flow
  room: {
    waiting: number
    size: number
    oldestMs: number
    byPriority: ByPriority
    /** Its standing delay is over target: newest first, and drops. */
    codel: boolean
  }
  /** Slots; `limit` absent: as many as come. */
  slots: { active: number; limit?: number }
  shed?: { pressure: number; by?: string; overload: number; signals: Record<string, number> }
  retry?: { ratio: number; budget: number; allowed: number }
  /** Since the pod began. */
  hedges?: { made: number; won: number }
  latency?: Percentiles
  /** From arrival to the first attempt. */
  queueWait?: Percentiles
  fallbacks: { step: string; reason: string; count: number }[]
  /** The default lane, if it was used, first; the busiest 100. */
  lanes: LaneTick[]
  store: StoreWord
  closed: boolean
}

/** Counts of a tick. */
export interface Flow {
  calls: number
  attempts: number
  outcomes: Record<Outcome, number>
  refused: { stage: Stage; code: ErrorCode; count: number }[]
}

/** Of the last ten seconds, estimated from buckets; absent: nothing ended. */
export interface Percentiles {
  count: number
  p50Ms: number
  p90Ms: number
  p99Ms: number
}

export interface LaneTick {
  lane: string
  /** Counted only while somebody looks; absent in the first tick. */
  flow?: { calls: number; refused: { stage: Stage; code: ErrorCode; count: number }[] }
  waiting: number
  /** Adaptive limit of this lane. */
  adaptive?: { limit: number; active: number }
  breaker?: BreakerTick
  limits: LimitTick[]
  /** The vendor wants a pause, or an operator does: nobody gets through before then. */
  pausedMs?: number
}

export interface BreakerTick {
  state: BreakerStateName
  /** Until it may change by itself; absent while it is closed. */
  untilMs?: number
  /** In its window, of the whole fleet. */
  calls: number
  failures: number
  slow: number
  consecutiveFailures: number
  /** While half-open: probes under way in the whole fleet, and successes so far. */
  probes: number
  successes: number
  /** This pod refuses on its own: it alone saw failures. */
  selfIsolated: boolean
  /** How old this pod's knowledge is. */
  ageMs: number
  /** Of the last hour, the newest last, at most 50. */
  timeline: Transition[]
}

export interface Transition {
  at: number
  guard: string
  lane: string
  from: BreakerStateName
  to: BreakerStateName
}

/** A shared limit, by the store's word (`ageMs` old), or this pod's share of it while there is none. */
export interface LimitTick {
  id: string
  limit: number
  /** Absent: not known, because the store is away. */
  used?: number
  remaining?: number
  /** When the next unit comes free, if nobody takes it before; 0: now. Absent: the store is away. */
  nextFreeMs?: number
  ageMs: number
  scope: Scope
  /** What it usually is, where an operator has changed it for a while, or somebody for good. */
  usual?: number
}

export interface Decisions {
  /** Since the last `decisions`: how many there were of all, and of these records. */
  seen: number
  records: Decision[]
}

export interface Decision {
  /** Unique on this pod. */
  id: number
  at: number
  guard: string
  lane: string
  user?: string
  tier?: string
  priority: Priority
  /** `OK`, `FAILED` (what the call threw came out), `LEFT` (its caller did), or why it was refused. */
  code: ErrorCode | 'OK' | 'FAILED' | 'LEFT'
  /** Where it ended. */
  stage: Stage
  /** Whose state decided. */
  scope: Scope
  /** From its arrival to its end, or to the beginning of a streamed answer. */
  tookMs: number
  attempts: number
  retryAfterMs?: number
  /** In a sentence. */
  why: string
  /** What would have let it in, in a sentence; absent where it was. */
  remedy?: string
  /** The numbers the decision went by. */
  numbers: Record<string, number | string | boolean>
  /** Of what is shared, how old this pod's knowledge was; absent where nothing shared was asked. */
  sharedAgeMs?: number
  /** The stages it went through, in order; the last one is where it ended. */
  path: StageNote[]
  /** False: only its end was noted, under load; times of the path are not known. */
  traced: boolean
}

export interface StageNote {
  stage: Stage
  /** Of which attempt; 0: of the call. */
  attempt: number
  /** Since the call came: when this stage let it go on, or did not. Absent: not known. */
  atMs?: number
  verdict: 'passed' | 'waited' | 'refused' | 'ended'
  scope: Scope
  numbers?: Record<string, number | string | boolean>
}

export interface QueuesTick {
  at: number
  queues: QueueTick[]
}

export interface QueueTick {
  name: string
  guard: string
  /** Of that guard: the one whose limits and breaker its jobs go by. */
  lane: string
  waiting: number
  delayed: number
  active: number
  done: number
  dead: number
  paused: boolean
  oldestMs: number
  lapsed: number
  /** Of what waits. */
  byPriority: ByPriority
  byTenant: {
    /** Those with the most, at most eight; an empty name: jobs without a tenant. */
    top: { tenant: string; waiting: number; byPriority: ByPriority }[]
    /** How many others there are, and what waits of theirs. */
    others: number
    othersWaiting: number
    /** False: estimated, because too many wait. */
    exact: boolean
  }
}

/** Columns of numbers, one for each step; `null`: nothing is known of it. The last step may not be over. */
export interface History {
  /** A guard; nothing: the pod. */
  guard?: string
  stepMs: number
  /** When the first step began. */
  fromAt: number
  columns: Record<string, (number | null)[]>
}

/** Columns of a guard's history. Counts are a second's; percentiles and gauges those of the step's end. */
export type GuardColumn =
  | 'calls'
  | 'refused'
  | 'failures'
  | 'throttled'
  | 'fallbacks'
  | 'active'
  | 'waiting'
  | 'p50Ms'
  | 'p99Ms'
  | 'breaker'

export type PodColumn = 'pressure' | 'loopMs' | 'inFlight' | 'waiting' | 'pods' | 'degraded'

export interface DemoState {
  /** A built-in load on the mock vendor. */
  load: boolean
  /** The mock vendor answers with errors. */
  broken: boolean
}

/**
 * `POST act`, JSON. Answered with 200 and `{ "ok": true, "did": "…" }`; or 400 (a mistake), 401 (no token, or not
 * the right one), 403 (not from here), 404 (no such guard, pod, queue), 409 (not possible as things are), 503 (the
 * store is away), each with `{ "ok": false, "problem": "…" }`. Asking is all: whether somebody is sure is the page's
 * question.
 */
export type Act =
  | { act: 'isolate'; guard: string; lane?: string; forMs: number; why?: string }
  /** Ends an operator's isolation. */
  | { act: 'release'; guard: string; lane?: string; why?: string }
  /** Closes it, and forgets what was counted. */
  | { act: 'reset'; guard: string; lane?: string; why?: string }
  | { act: 'pause'; guard: string; lane?: string; forMs: number; why?: string }
  /** Another limit for a while. */
  | { act: 'limit'; guard: string; id: string; limit: number; forMs: number; why?: string }
  | { act: 'drain'; pod: string; why?: string }
  /** Dead letters go back: one, or all. */
  | { act: 'replay'; queue: string; id?: string; why?: string }
  | { act: 'demo'; load?: boolean; broken?: boolean }

export type ActAnswer = { ok: true; did: string } | { ok: false; problem: string }

/** One line of the audit. */
export interface ActNote {
  at: number
  /** The pod that was asked. */
  pod: string
  act: Act['act']
  /** What it was done to: a guard and its lane, a pod, a queue. */
  on: string
  did: string
  ok: boolean
  /** Where it came from; never the token. */
  by: string
}

/** `GET dead?queue=…&from=0&count=50`: dead letters, the oldest first. Nothing of what is in them. */
export interface DeadLetters {
  queue: string
  from: number
  letters: {
    id: string
    priority: Priority
    tenant?: string
    attempt: number
    attempts: number
    ageMs: number
  }[]
}
