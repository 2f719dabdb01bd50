/** A scenario as it is written down, in a program or in a file: a world, what happens in it, what must hold. */
import type { Duration, GuardOptions, Priority } from 'spillway'
import type { MetricName } from './metric-names.js'
import type { Spread } from './spread.js'

export interface Scenario {
  /** One word, as typed after `spillway simulate`. */
  name: string
  title: string
  /** What happens and why it matters, for whoever reads the report. */
  story: string
  durationMs: Duration
  /** How many at the beginning. Default: 1. */
  pods?: number
  /** Every pod's clock is wrong by up to so much, either way. */
  clocks?: { skewMs?: Duration; driftPpm?: number }
  autoscale?: AutoscalePlan
  /** What pods share. `memory`: in no time at all, for a single pod. Default: 1 ms away. */
  store?: 'memory' | { latencyMs?: Spread; commandTimeoutMs?: Duration }
  vendor: VendorPlan
  /** Every pod's guard. With `--config` it is yours instead. */
  guard: GuardOptions
  /** What the pods do in the run beside it, without Spillway. */
  naive?: NaivePlan
  clients: readonly ClientPlan[]
  events?: readonly Happening[]
  expect: readonly Expectation[]
}

export interface VendorPlan {
  /** How long a call takes once it is worked on. */
  serviceMs: Spread
  /** The way there. Default: 0. */
  travelMs?: Spread
  /** Calls worked on at once. Default: any number. */
  capacity?: number
  /** What comes beyond it waits in line, or all are slower. Default: `queue`. */
  beyondCapacity?: 'queue' | 'slow'
  /** What it really allows, whatever the guard believes; beyond it 429 and `Retry-After`. */
  limits?: readonly { limit: number; windowMs: Duration; unit?: string }[]
  failureRate?: number
  hangRate?: number
  /** It stops working for callers who have left. Default: false, as with most. */
  cancels?: boolean
}

/** What people write first: each call tries again by itself, and whoever has to wait waits in an array. */
export interface NaivePlan {
  /** Attempts of a call, the first included. Default: 3. */
  attempts?: number
  /** Longest wait for one. Default: 1 second. */
  timeoutMs?: Duration
  backoff?: 'none' | 'constant' | 'exponential'
  /** Before the first retry. Default: 100 ms. */
  delayMs?: Duration
  /** Calls at once in a pod; the rest waits in line, however many. Default: any number. */
  concurrency?: number
}

export interface ClientPlan {
  name: string
  /** Open loop: so many requests a second on average, whatever becomes of them. */
  rps?: number
  /** Closed loop: so many callers, each with one request at a time. */
  callers?: number
  /** Of a caller, between two requests. Default: 0, after a failure 100 ms. */
  thinkMs?: Spread
  /** So many requests in one moment, `fromMs`. */
  burst?: number
  fromMs?: Duration
  /** Default: to the end. */
  untilMs?: Duration
  /** All go to this pod, counted from 0; otherwise each to the next. */
  pod?: number
  priority?: Priority
  tier?: string
  /** So many users take turns. Default: none is named. */
  users?: number
  lane?: string
  cost?: Readonly<Record<string, number>>
  /** How long it waits for an answer, each time it asks. */
  timeoutMs: Duration
  /** It asks again, so often in all, at another pod. */
  retries?: { attempts: number; delayMs: Spread }
  /** A share of them leaves before the answer is there. */
  hangUps?: { share: number; afterMs: Spread }
}

export interface AutoscalePlan {
  min: number
  max: number
  /** Requests under way that one pod is there for. */
  perPod: number
  /** How often it looks. Default: 5 seconds. */
  everyMs?: Duration
  /** From the decision to a pod that serves. Default: 5 seconds. */
  startMs?: Duration
}

export type Happening = { atMs: Duration } & (
  | { vendor: VendorHappening }
  | { store: StoreHappening; pod?: number }
  | { pods: PodsHappening }
  /** One pod's own way to the vendor. */
  | { calls: 'fail' | 'hang' | 'recover'; pod: number }
)

export type VendorHappening =
  /** Nothing is worked on until `recover`. */
  | 'pause'
  | 'fail'
  | 'hang'
  /** Undoes all but `capacity` and `slowStart`. */
  | 'recover'
  | { fail: number }
  | { hang: number }
  /** Everything takes so many times as long. */
  | { slow: number }
  /** 429 for everybody, for so long. */
  | { throttleMs: Duration }
  | { capacity: number }
  /** Begins with so little capacity, and reaches what it had after so long. */
  | { slowStart: { from: number; overMs: Duration } }

export type StoreHappening =
  /** Connections are cut. */
  | 'down'
  | 'up'
  /** Nothing is answered, as by a stopped process. */
  | 'pause'
  | 'resume'
  /** Connections break, everything is forgotten. */
  | 'restart'
  | { loseReplies: number }
  | { loseRequests: number }
  | { latencyMs: Spread }

export type PodsHappening =
  | { start: number; everyMs?: Duration }
  /** They drain. */
  | { stop: number; everyMs?: Duration }
  /** They vanish. */
  | { kill: number }
  /** Every pod is replaced: so many new ones start, as many old ones drain, and so on. */
  | { roll: number; everyMs?: Duration }

export interface Expectation {
  metric: MetricName
  atLeast?: number
  atMost?: number
  fromMs?: Duration
  untilMs?: Duration
  /** Requests of this client alone. */
  client?: string
  /** In words, for the report. Default: what the metric says. */
  says?: string
}
