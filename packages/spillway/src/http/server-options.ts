/** How a user says what a server does with a request before its handler sees it. */

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

/** Whose request it is, and how important. */
export interface Identity {
  user?: string | undefined
  tier?: string | undefined
  /** Default: `normal`. */
  priority?: Priority | undefined
  /** Default: the route, where the framework knows it; else the path. */
  endpoint?: string | undefined
}

/** Says no before anything is done: a load shedder, or anything like it. */
export interface ServerShedder {
  /** Nothing: refused. Otherwise it is told when the request is over. */
  enter(request: Identity): { end(): void } | undefined
}

/** What a health report has to have to be served. */
export interface HealthSource {
  live(): Promise<HealthAnswer>
  ready(): Promise<HealthAnswer>
  deep(): Promise<HealthAnswer>
}

export interface HealthAnswer {
  readonly status: 'healthy' | 'degraded' | 'unhealthy'
}

export interface ServerOptions<Request> {
  /** Stands in errors, and tells limits of several servers in one store apart. Default: `server`. */
  name?: string
  /** Where limits are counted. Default: in memory, for this process. */
  store?: Store
  /** Stage 1: a load shedder. Requests of priority `critical` are its business, too. */
  shed?: ServerShedder
  /** Stage 2: what one user, address, tier or endpoint may ask for. */
  limits?: readonly UserLevel[]
  /** Whose request it is. Do not believe what a client says of its tier or priority. */
  identify?: (request: Request) => Identity | undefined
  /** Proxies whose word on the client's address is believed. Default: nobody's. */
  trustedProxies?: TrustedProxies
  /** IPv6 addresses that have so many bits in common are counted as one. Default: 64. */
  ipv6Bits?: number
  /** Among how many pods levels with the outage rule `share` are shared out. Default: 1. */
  expectedPods?: number
  deadline?: {
    /** Names of the headers, if not Spillway's own. */
    headers?: HopHeaders
    /** Longest time for a request, whatever its caller says. */
    timeoutMs?: Duration
  }
  /** Answers `/health/live`, `/health/ready` and `/health/deep`, before anything else. */
  health?: HealthSource
  /** Where. Default: `/health`. */
  healthPath?: string
  /** Which of the three; a deep report is for operators. Default: all. */
  healthLevels?: readonly HealthLevel[]
  /** Default: the system's clock. */
  clock?: Clock
  /** Default: `Math.random`. */
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
