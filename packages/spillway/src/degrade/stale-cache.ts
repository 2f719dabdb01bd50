/**
 * A fallback to the last good response to the same request, if it is not too old. Successful calls
 * fill it; it is read only when a call fails, so it never saves a call. When it is full, the entry
 * that was updated longest ago is dropped. Values are stored without a copy, unless `copy` makes
 * one.
 */

import {
  type Duration,
  duration,
  func,
  integer,
  object,
  optional,
  together,
  validate,
} from '../core/options/checks.js'
import type { Clock } from '../core/time/clock.js'
import { clockOption } from '../core/time/clock-options.js'
import type { RunOptions } from '../guard/run-options.js'
import type { FallbackStep } from '../guard/stages/fallback.js'
import { isStreamed } from '../guard/stream/watched-bodies.js'
import { type StepOptions, stepFields } from './step-options.js'

/** Options of `staleCache()`. */
export interface StaleCacheOptions extends StepOptions {
  /** Older responses are not used. Range: from 1 ms. */
  maxAgeMs: Duration
  /** Most responses kept. Range: integers from 1. Default: 1,000. */
  size?: number
  /** Most bytes of all responses together; needs `bytesOf`. Range: integers from 1. Default: no limit. */
  maxBytes?: number
  /** Bytes that a response takes, for `maxBytes`. Default: not counted. */
  bytesOf?: (value: unknown) => number
  /** Key of a call; undefined: it is not cached. Default: its `cacheKey`. */
  key?: (options: RunOptions) => string | undefined
  /**
   * Copies values when they are stored and returned, for callers that modify them. Default: values are shared.
   */
  copy?: <T>(value: T) => T
  /** The clock to read and to set timers with. Default: the system clock. */
  clock?: Clock
}

/** A fallback that answers with the last good value. Created by `staleCache()`. */
export interface StaleCache extends FallbackStep {
  /** Number of responses in the cache. */
  readonly size: number
  /** Forgets all values. */
  clear(): void
}

interface Kept {
  value: unknown
  atMs: number
  bytes: number
}

const readFields = object({
  ...stepFields,
  maxAgeMs: duration({ min: 1 }),
  size: optional(integer({ min: 1 }), 1_000),
  maxBytes: optional(integer({ min: 1 }), Number.POSITIVE_INFINITY),
  bytesOf: optional(func<(value: unknown) => number>()),
  key: optional(
    func<(options: RunOptions) => string | undefined>(),
    ({ cacheKey }: RunOptions) => cacheKey,
  ),
  copy: optional(func<(value: unknown) => unknown>(), (value: unknown) => value),
  clock: clockOption,
})

const readOptions = together(readFields, ({ maxBytes, bytesOf }, path, problems) => {
  if (maxBytes === Number.POSITIVE_INFINITY || bytesOf !== undefined) return
  problems.push({ path: `${path}.maxBytes`, message: 'needs bytesOf, which measures a response' })
})

/**
 * Creates a fallback that keeps good values and answers with them while they are not too old.
 *
 * @example
 * spillway.guard('prices', { fallback: [staleCache({ maxAgeMs: '5m' })] })
 * await guard.run(() => loadPrice(id), { cacheKey: id })
 */
export function staleCache(options: StaleCacheOptions): StaleCache {
  const { name, on, maxAgeMs, size, maxBytes, bytesOf, key, copy, clock } = validate(
    'staleCache',
    options,
    readOptions,
  )
  /** In the order of their last update, which a map keeps. */
  const kept = new Map<string, Kept>()
  let keptBytes = 0

  function drop(about: string): void {
    keptBytes -= kept.get(about)?.bytes ?? 0
    kept.delete(about)
  }

  return {
    name: name ?? 'stale-cache',
    on,
    get size() {
      return kept.size
    },
    clear() {
      kept.clear()
      keptBytes = 0
    },
    learn(call, value) {
      const about = key(call)
      // A stream cannot be returned twice.
      if (about === undefined || value === undefined || isStreamed(value)) return
      drop(about)
      const bytes = bytesOf?.(value) ?? 0
      if (!(bytes <= maxBytes)) return
      kept.set(about, { value: copy(value), atMs: clock.now(), bytes })
      keptBytes += bytes
      while (kept.size > size || keptBytes > maxBytes) drop(kept.keys().next().value as string)
    },
    answer(call) {
      const about = key(call.options)
      const found = about === undefined ? undefined : kept.get(about)
      if (about === undefined || found === undefined) return undefined
      const ageMs = clock.now() - found.atMs
      if (ageMs <= maxAgeMs) {
        const message = `from the cache, ${inSeconds(ageMs)} old`
        return { value: copy(found.value), message, ageMs }
      }
      drop(about)
      return undefined
    },
  }
}

function inSeconds(ms: number): string {
  return `${Math.round(ms / 100) / 10} s`
}
