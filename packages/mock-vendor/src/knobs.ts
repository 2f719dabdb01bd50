/**
 * The knobs of a mock vendor: for all requests, for those of one model, or for one request by its
 * `x-mock` header. Plain data, so that it fits into a header or a file.
 */

import type { Random } from 'spillway/internal'
import {
  type Duration,
  duration,
  either,
  integer,
  number,
  object,
  oneOf,
  optional,
} from 'spillway/options'
import { flag, off, rangeOf } from './checks.js'
import { ERROR_KINDS, type ErrorKind } from './error-kinds.js'

/** Constant, or drawn evenly between two values. */
export type MockDuration = Duration | readonly [Duration, Duration]

/** Behaviour of a mock vendor. `false` switches a knob off that has no other value for it. */
export interface MockKnobs {
  /** Time until the response begins. Range: from 0 ms. Default: 0. */
  latencyMs?: MockDuration | undefined
  /** Additional latency that ends gradually, counted from `start()` or from when it was set. Default: none. */
  slowStart?:
    | {
        /** Additional latency at first. Range: from 0 ms. */
        extraMs: Duration
        /** Time until it has reached 0. Range: from 0 ms. */
        overMs: Duration
      }
    | false
    | undefined
  /**
   * Tokens of a response, each in its own chunk; at most as many as the request allows. Range: integers from 0.
   * Default: 16.
   */
  tokens?: number | readonly [number, number] | undefined
  /**
   * Time between two tokens. A response that is not streamed takes this long for each. Range: from 0 ms.
   * Default: 0.
   */
  tokenMs?: MockDuration | undefined
  /**
   * Responds with this status, in the API's own error format. Range: 400 to 599. Default: 500, if `errorRate`
   * is set.
   */
  status?: number | undefined
  /**
   * Responds with the error that the vendor documents for this kind, such as `quota-exhausted`, `invalid-key`,
   * `context-window`, `content-filter` or `overloaded`. Comes before `status`. Default: none.
   */
  error?: ErrorKind | false | undefined
  /**
   * Most tokens of a prompt. A longer one is answered with the error `context-window`. Range: integers
   * from 1. Default: no limit.
   */
  contextTokens?: number | false | undefined
  /** Share of the requests answered with `status`. Range: 0 to 1. Default: 1 with a `status` or an `error`, otherwise 0. */
  errorRate?: number | undefined
  /**
   * Sends `Retry-After` with `status`, in whole seconds, rounded up. Range: from 0 ms. Default: no such header.
   */
  retryAfterMs?: Duration | false | undefined
  /** Accepts the request and never responds. Default: false. */
  neverAnswer?: boolean | undefined
  /** Stalls after the headers. Default: false. */
  stallBefore?: boolean | undefined
  /**
   * Stalls after this number of tokens; in a response that is not streamed, after half of it. Range: integers
   * from 0. Default: it does not.
   */
  stallAfter?: number | false | undefined
  /** How long a stall lasts. Range: from 0 ms. Default: forever. */
  stallMs?: Duration | false | undefined
  /**
   * Destroys the socket after this number of chunks (tokens); if not streamed, after half of the response.
   * Range: integers from 0. Default: it does not.
   */
  cutAfter?: number | false | undefined
  /**
   * Sends an error event after this number of tokens, with status 200; if not streamed, a plain error. Range:
   * integers from 0. Default: it does not.
   */
  errorAfter?: number | false | undefined
  /**
   * `json`: the middle of the response is no JSON. `sse`: from the middle on, the blank lines between events
   * and the end are missing; if not streamed, like `json`. Default: false.
   */
  garbage?: 'json' | 'sse' | false | undefined
}

const MS = duration({ min: 0 })
const COUNT = integer({ min: 0 })
const SOME_MS = either(MS, rangeOf(MS))
const FINITE_MS = duration({ min: 0, max: Number.MAX_SAFE_INTEGER })

export const readKnobs = object({
  latencyMs: optional(SOME_MS),
  slowStart: optional(either(object({ extraMs: FINITE_MS, overMs: FINITE_MS }), off)),
  tokens: optional(either(COUNT, rangeOf(COUNT))),
  tokenMs: optional(SOME_MS),
  status: optional(integer({ min: 400, max: 599 })),
  error: optional(either(oneOf(...ERROR_KINDS), off)),
  contextTokens: optional(either(integer({ min: 1 }), off)),
  errorRate: optional(number({ min: 0, max: 1 })),
  retryAfterMs: optional(either(FINITE_MS, off)),
  neverAnswer: optional(flag),
  stallBefore: optional(flag),
  stallAfter: optional(either(COUNT, off)),
  stallMs: optional(either(MS, off)),
  cutAfter: optional(either(COUNT, off)),
  errorAfter: optional(either(COUNT, off)),
  garbage: optional(either(oneOf('json', 'sse'), off)),
})

export type Knobs = ReturnType<typeof readKnobs>

/** Later layers win, knob by knob. */
export function layKnobs(layers: readonly (Knobs | undefined)[]): Knobs {
  const result: Record<string, unknown> = {}
  for (const layer of layers) {
    if (layer === undefined) continue
    // A status without a share applies to all requests, even if another layer has a share.
    if (layer.status !== undefined || layer.error) result.errorRate = 1
    for (const [name, value] of Object.entries(layer)) {
      if (value !== undefined) result[name] = value
    }
  }
  return result as Knobs
}

/** The faults of one request, drawn once. */
export interface Plan {
  readonly latencyMs: number
  readonly tokens: number
  tokenMs(): number
  readonly failure:
    | {
        readonly status: number
        readonly kind: ErrorKind | undefined
        readonly retryAfterMs: number | undefined
      }
    | undefined
  /** Infinity: no limit. */
  readonly contextTokens: number
  readonly neverAnswer: boolean
  readonly stallBefore: boolean
  readonly stallMs: number
  /** Infinity: never. */
  readonly stallAfter: number
  readonly cutAfter: number
  readonly errorAfter: number
  readonly garbage: 'json' | 'sse' | false
}

/** `runningMs`: time since the slow start began. */
export function planFor(knobs: Knobs, random: Random, runningMs: number): Plan {
  const { latencyMs = 0, slowStart, tokens = 16, tokenMs = 0, errorRate = 0 } = knobs
  const fails = random() < errorRate
  return {
    latencyMs: draw(latencyMs, random) + (slowStart ? extraMs(slowStart, runningMs) : 0),
    tokens: typeof tokens === 'number' ? tokens : Math.round(draw(tokens, random)),
    tokenMs: () => draw(tokenMs, random),
    failure: fails
      ? {
          status: knobs.status ?? 500,
          kind: knobs.error || undefined,
          retryAfterMs: knobs.retryAfterMs || undefined,
        }
      : undefined,
    contextTokens: orNever(knobs.contextTokens),
    neverAnswer: knobs.neverAnswer ?? false,
    stallBefore: knobs.stallBefore ?? false,
    stallMs: orNever(knobs.stallMs),
    stallAfter: orNever(knobs.stallAfter),
    cutAfter: orNever(knobs.cutAfter),
    errorAfter: orNever(knobs.errorAfter),
    garbage: knobs.garbage ?? false,
  }
}

function draw(range: number | readonly [number, number], random: Random): number {
  if (typeof range === 'number') return range
  return range[0] + (range[1] - range[0]) * random()
}

function extraMs(slow: { extraMs: number; overMs: number }, runningMs: number): number {
  if (runningMs >= slow.overMs) return 0
  return slow.extraMs * (1 - runningMs / slow.overMs)
}

function orNever(value: number | false | undefined): number {
  return value === undefined || value === false ? Number.POSITIVE_INFINITY : value
}
