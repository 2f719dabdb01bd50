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
}

const readOptions = object({
  ...stepFields,
  maxAgeMs: duration({ min: 1 }),
  size: optional(integer({ min: 1 }), 1_000),
  key: optional(
    func<(options: RunOptions) => string | undefined>(),
    ({ cacheKey }: RunOptions) => cacheKey,
  ),
  copy: optional(func<(value: unknown) => unknown>(), (value: unknown) => value),
  clock: clockOption,
})

/**
 * Creates a fallback that keeps good values and answers with them while they are not too old.
 *
 * @example
 * spillway.guard('prices', { fallback: [staleCache({ maxAgeMs: '5m' })] })
 * await guard.run(() => loadPrice(id), { cacheKey: id })
 */
export function staleCache(options: StaleCacheOptions): StaleCache {
  const { name, on, maxAgeMs, size, key, copy, clock } = validate(
    'staleCache',
    options,
    readOptions,
  )
  /** In the order of their last update, which a map keeps. */
  const kept = new Map<string, Kept>()
  return {
    name: name ?? 'stale-cache',
    on,
    get size() {
      return kept.size
    },
    clear: () => kept.clear(),
    learn(call, value) {
      const about = key(call)
      // A stream cannot be returned twice.
      if (about === undefined || value === undefined || isStreamed(value)) return
      kept.delete(about)
      kept.set(about, { value: copy(value), atMs: clock.now() })
      if (kept.size > size) kept.delete(kept.keys().next().value as string)
    },
    answer(call) {
      const about = key(call.options)
      const found = about === undefined ? undefined : kept.get(about)
      if (about === undefined || found === undefined) return undefined
      const ageMs = clock.now() - found.atMs
      if (ageMs <= maxAgeMs) {
        return { value: copy(found.value), message: `from the cache, ${inSeconds(ageMs)} old` }
      }
      kept.delete(about)
      return undefined
    },
  }
}

function inSeconds(ms: number): string {
  return `${Math.round(ms / 100) / 10} s`
}
