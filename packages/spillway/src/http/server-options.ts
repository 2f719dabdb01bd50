/** Options of what a server does with a request before its handler. */

import type { SpillwayError } from '../core/errors.js'
import type { HopHeaders } from '../core/hops.js'
import {
  arrayOf,
  type Check,
  type Duration,
  duration,
  func,
  having,
  integer,
  object,
  oneOf,
  optional,
  text,
} from '../core/options/checks.js'
import type { Priority } from '../core/options/priority.js'
import type { Random } from '../core/random.js'
import type { Clock } from '../core/time/clock.js'
import { clockOption, randomOption } from '../core/time/clock-options.js'
import type { HealthLevel } from '../health/health.js'
import { readStore } from '../shared/store-option.js'
import { readLevels, type UserLevel } from '../shared/user-limits/levels.js'
import type { Store } from '../store/port.js'
import { readTrustedProxies, type TrustedProxies } from './client-address.js'

/** The caller of a request, and its priority. */
export interface Identity {
  /** Id of the user, for limits and load shedding. Default: none. */
  user?: string | undefined
  /** Tier of the user, such as `free` or `pro`, for limits and load shedding. Default: none. */
  tier?: string | undefined
  /** Priority of the request. Default: `normal`. */
  priority?: Priority | undefined
  /** Name of the endpoint, for limits per endpoint. Default: the route if the framework knows it, otherwise the path. */
  endpoint?: string | undefined
}

/** Refuses requests before any work is done: a load shedder, or a similar object. */
export interface ServerShedder {
  /** Undefined: refused. Otherwise `end` is called when the request is over. */
  enter(request: Identity): { end(): void } | undefined
  /**
   * Used in place of `enter` if defined. Instead of undefined it returns the refusal, with the reason and the time to
   * wait.
   */
  admit?(request: Identity): { end(): void } | SpillwayError
}

/** What is needed to serve health reports. */
export interface HealthSource {
  /** Whether the process should keep running. */
  live(): Promise<HealthAnswer>
  /** Whether the pod should get requests. */
  ready(): Promise<HealthAnswer>
  /** Everything in detail, for operators. */
  deep(): Promise<HealthAnswer>
}

/** The part of a health report that a server needs. */
export interface HealthAnswer {
  /** The status of the report. */
  readonly status: 'healthy' | 'degraded' | 'unhealthy'
}

/** Options of a server adapter: `spillwayExpress`, `spillwayFastify`, `spillwayHono` or `spillwayHttp`. */
export interface ServerOptions<Request> {
  /** Name in errors. Separates the limits of several servers in one store. Default: `server`. */
  name?: string
  /** Where limits are counted. Default: in memory, for this process. */
  store?: Store
  /** A load shedder, which decides first. It also decides on requests of priority `critical`. Default: none. */
  shed?: ServerShedder
  /** Limits for each user, address, tier or endpoint, charged after `shed`. Default: none. */
  limits?: readonly UserLevel[]
  /**
   * Returns the caller of a request. Do not trust a client's own claim of its tier or priority. Default:
   * callers are distinguished by address only.
   */
  identify?: (request: Request) => Identity | undefined
  /** Proxies whose report of the client's address is trusted. Default: none. */
  trustedProxies?: TrustedProxies
  /**
   * IPv6 addresses with this many leading bits in common count as one. Range: integers from 16 to 128. Default:
   * 64.
   */
  ipv6Bits?: number
  /** Number of pods that share levels with the outage rule `share`. Range: integers from 1. Default: 1. */
  expectedPods?: number
  /** How long a request may take. Default: as long as its caller allows. */
  deadline?: {
    /** Names of the headers. Default: `spillway-deadline-ms`, `spillway-attempt` and `spillway-retried`. */
    headers?: HopHeaders
    /** Longest time for a request, whatever its caller allows. Range: from 1 ms. Default: no limit. */
    timeoutMs?: Duration
  }
  /** Answers `/health/live`, `/health/ready` and `/health/deep` before anything else. Default: none. */
  health?: HealthSource
  /** Path of the health reports. Default: `/health`. */
  healthPath?: string
  /** Which of the three are served; a deep report is for operators. Default: all. */
  healthLevels?: readonly HealthLevel[]
  /** The clock to read and to set timers with. Default: the system clock. */
  clock?: Clock
  /** Source of random numbers from 0 to 1. Default: `Math.random`. */
  random?: Random
}

const readHeaders: Check<HopHeaders> = (value) => value as HopHeaders

const fields = {
  name: optional(text(), 'server'),
  store: optional(readStore),
  shed: optional(having<ServerShedder>('a load shedder', 'enter')),
  limits: optional(readLevels),
  trustedProxies: optional(readTrustedProxies, 0),
  ipv6Bits: optional(integer({ min: 16, max: 128 }), 64),
  expectedPods: optional(integer({ min: 1 }), 1),
  deadline: optional(
    object({
      headers: optional(readHeaders),
      timeoutMs: optional(duration({ min: 1 })),
    }),
  ),
  health: optional(having<HealthSource>('a health report', 'live', 'ready', 'deep')),
  healthPath: optional(text(), '/health'),
  healthLevels: optional<readonly HealthLevel[]>(arrayOf(oneOf('live', 'ready', 'deep')), [
    'live',
    'ready',
    'deep',
  ]),
  clock: clockOption,
  random: randomOption,
}

export type CheckedServer<Request> = ReturnType<ReturnType<typeof readingServer<Request>>>

export function readingServer<Request>() {
  return object({
    ...fields,
    identify: optional(func<(request: Request) => Identity | undefined>()),
  })
}
