/** The format of a scenario in a program or in a file: pods, a vendor, clients, events, expectations. */
import type { Duration, GuardOptions, Priority } from 'spillway'
import type { MetricName } from './metric-names.js'
import type { Spread } from './spread.js'

/** A simulated fleet with its vendor and its clients, the events of the run, and what has to hold. */
export interface Scenario {
  /** One word, as typed after `spillway simulate`. */
  name: string
  /** Headline of the report. */
  title: string
  /** What happens and why it matters, for readers of the report. */
  story: string
  /** Simulated time. Range: from 100 ms. */
  durationMs: Duration
  /** Number of pods at the beginning. Range: integers from 1. Default: 1. */
  pods?: number
  /** Errors of the pods' clocks, drawn for each pod. Default: all clocks are right. */
  clocks?: {
    /** Most that a clock is ahead or behind. Range: from 0 ms. Default: 0. */
    skewMs?: Duration
    /** Most that a clock is too fast or too slow, in millionths. Range: from 0. Default: 0. */
    driftPpm?: number
  }
  /** Starts and stops pods by load. Default: the number of pods does not change. */
  autoscale?: AutoscalePlan
  /** The store that the pods share. `memory`: without latency, for a single pod. Default: a latency of 1 ms. */
  store?:
    | 'memory'
    | {
        /** Round-trip time. Default: 1 ms. */
        latencyMs?: Spread
        /** Longest time of a command. Range: from 1 ms. Default: 100 ms. */
        commandTimeoutMs?: Duration
      }
  /** The vendor that all pods call. */
  vendor: VendorPlan
  /** Options of the guard in every pod. `--config` replaces them. */
  guard: GuardOptions
  /** Behaviour of the pods in the second run, without Spillway. Default: the defaults of each field. */
  naive?: NaivePlan
  /** Where the requests come from. */
  clients: readonly ClientPlan[]
  /** Changes during the run. Default: none. */
  events?: readonly ScenarioEvent[]
  /** Conditions that have to hold with Spillway. */
  expect: readonly Expectation[]
}

/** The simulated vendor. */
export interface VendorPlan {
  /** How long a call takes once it is being processed. */
  serviceMs: Spread
  /** Time until a call arrives. Default: 0. */
  travelMs?: Spread
  /** Calls processed at once. Range: integers from 1. Default: any number. */
  capacity?: number
  /** Calls beyond the capacity wait, or share it and are all slower. Default: `queue`. */
  beyondCapacity?: 'queue' | 'slow'
  /** The vendor's real limits, independent of the guard's options; beyond them it answers 429. Default: none. */
  limits?: readonly {
    /** Units in any window. Range: integers from 1. */
    limit: number
    /** Length of the window. Range: from 1 ms. */
    windowMs: Duration
    /** The counted unit. Default: `requests`. */
    unit?: string
  }[]
  /** Share of the calls that fail. Range: 0 to 1. Default: 0. */
  failureRate?: number
  /** Share of the calls that are never answered. Range: 0 to 1. Default: 0. */
  hangRate?: number
  /** Stops processing calls whose callers have left. Default: false, like most vendors. */
  cancels?: boolean
}

/** Code without Spillway: each call has its own retries, and calls wait in an unbounded array. */
export interface NaivePlan {
  /** Attempts of a call, the first included. Range: integers from 1. Default: 3. */
  attempts?: number
  /** Longest time of an attempt. Range: from 1 ms. Default: 1 second. */
  timeoutMs?: Duration
  /** How the waits between attempts grow. Default: `constant`. */
  backoff?: 'none' | 'constant' | 'exponential'
  /** Wait before the first retry. Range: from 0 ms. Default: 100 ms. */
  delayMs?: Duration
  /** Calls at once in a pod; all others wait. Range: integers from 1. Default: any number. */
  concurrency?: number
}

/** A group of clients. It needs one of `rps`, `callers` and `burst`. */
export interface ClientPlan {
  /** Name in the report and in expectations. */
  name: string
  /** Open loop: requests per second on average, independent of the answers. Range: from 0.001. Default: none. */
  rps?: number
  /** Closed loop: number of callers, each with one request at a time. Range: integers from 1. Default: none. */
  callers?: number
  /** Pause of a caller between two requests. Default: 0, after a failure 100 ms. */
  thinkMs?: Spread
  /** Number of requests at one moment, `fromMs`. Range: integers from 1. Default: none. */
  burst?: number
  /** Time of its first request. Range: from 0 ms. Default: 0. */
  fromMs?: Duration
  /** Time of its last request. Range: from 0 ms. Default: the end of the run. */
  untilMs?: Duration
  /** Index of the pod that gets all its requests. Range: integers from 0. Default: the pods take turns. */
  pod?: number
  /** Priority of its requests. Default: `normal`. */
  priority?: Priority
  /** Tier of its users. Default: none. */
  tier?: string
  /** Number of users that take turns. Range: integers from 1. Default: requests have no user. */
  users?: number
  /** Lane of its requests. Default: one lane for all requests. */
  lane?: string
  /** Cost of a request by unit. Default: `requests` 1, others 0. */
  cost?: Readonly<Record<string, number>>
  /** How long a request waits for its answer. Range: from 1 ms. */
  timeoutMs: Duration
  /** Repeats failed requests at another pod. Default: it does not. */
  retries?: {
    /** Requests in all, the first included. Range: integers from 1. */
    attempts: number
    /** Pause before each of them. */
    delayMs: Spread
  }
  /** Clients that leave before the answer has arrived. Default: none. */
  hangUps?: {
    /** Share of the requests. Range: 0 to 1. */
    share: number
    /** Time until they leave. */
    afterMs: Spread
  }
}

/** Rules of the autoscaler. */
export interface AutoscalePlan {
  /** Fewest pods. Range: integers from 1. */
  min: number
  /** Most pods. Range: integers from 1. */
  max: number
  /** Requests in flight that one pod is meant for. Range: from 0.001. */
  perPod: number
  /** Interval of its decisions. Range: from 1 ms. Default: 5 seconds. */
  everyMs?: Duration
  /** Time from a decision to a pod that serves requests. Range: from 0 ms. Default: 5 seconds. */
  startMs?: Duration
}

/** An event of the run. */
export type ScenarioEvent = {
  /** Time of the event. Range: from 0 ms. */
  atMs: Duration
} & (
  | { vendor: VendorEvent }
  | {
      store: StoreEvent
      /** Index of the only pod that is affected. Range: integers from 0. Default: all pods. */
      pod?: number
    }
  | { pods: PodsEvent }
  | {
      /** A fault of the network between one pod and the vendor. */
      calls: 'fail' | 'hang' | 'recover'
      /** Index of the pod. Range: integers from 0. */
      pod: number
    }
)

/**
 * An event of the vendor. `pause`: nothing is processed until `recover`. `fail`, `hang`: all calls do. `recover`:
 * undoes everything except `capacity` and `slowStart`.
 */
export type VendorEvent =
  | 'pause'
  | 'fail'
  | 'hang'
  | 'recover'
  | {
      /** Share of the calls that fail. Range: 0 to 1. */
      fail: number
    }
  | {
      /** Share of the calls that are never answered. Range: 0 to 1. */
      hang: number
    }
  | {
      /** Factor by which all calls take longer. Range: from 0.001. */
      slow: number
    }
  | {
      /** Answers all calls with 429 for this time. Range: from 0 ms. */
      throttleMs: Duration
    }
  | {
      /** New capacity, in calls at once. Range: integers from 1. */
      capacity: number
    }
  | {
      /** Factor by which the vendor's limits differ from the initial ones from now on. Range: from 0.001. */
      limits: number
    }
  | {
      /** Reduces the capacity and lets it grow back. */
      slowStart: {
        /** Capacity at first, in calls at once. Range: integers from 1. */
        from: number
        /** Time until the former capacity is reached. Range: from 0 ms. */
        overMs: Duration
      }
    }

/**
 * An event of the store. `down`: connections are cut until `up`. `pause`: nothing is answered until `resume`, as by a
 * stopped process. `restart`: connections break, and all data is lost.
 */
export type StoreEvent =
  | 'down'
  | 'up'
  | 'pause'
  | 'resume'
  | 'restart'
  | {
      /** Share of the replies that are lost. Range: 0 to 1. */
      loseReplies: number
    }
  | {
      /** Share of the requests that are lost. Range: 0 to 1. */
      loseRequests: number
    }
  | { latencyMs: Spread }

/** An event of the fleet. */
export type PodsEvent =
  | {
      /** Number of pods that start. Range: integers from 1. */
      start: number
      /** Time between two of them. Range: from 0 ms. Default: 0. */
      everyMs?: Duration
    }
  | {
      /** Number of pods that drain and stop. Range: integers from 1. */
      stop: number
      /** Time between two of them. Range: from 0 ms. Default: 0. */
      everyMs?: Duration
    }
  | {
      /** Number of pods that vanish without draining. Range: integers from 1. */
      kill: number
    }
  | {
      /** Rolling deploy: this number of pods starts while as many old ones drain. Range: integers from 1. */
      roll: number
      /** Time between two steps. Range: from 0 ms. Default: 0. */
      everyMs?: Duration
    }

/** A condition on a metric of the run. */
export interface Expectation {
  /** The metric, which also defines the unit of the bounds. */
  metric: MetricName
  /** Lower bound, in units of the metric. Range: from 0. Default: none. */
  atLeast?: number
  /** Upper bound, in units of the metric. Range: from 0. Default: none. */
  atMost?: number
  /** Beginning of the measured time. Range: from 0 ms. Default: 0. */
  fromMs?: Duration
  /** End of the measured time. Range: from 0 ms. Default: the end of the run. */
  untilMs?: Duration
  /** Only requests of this client. Default: all requests. */
  client?: string
  /** The condition in words, for the report. Default: the description of the metric. */
  says?: string
}
