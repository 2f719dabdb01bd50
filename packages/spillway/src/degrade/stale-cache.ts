/**
 * The last good answer to the same question, while it is not too old. Filled by calls that went well, asked
 * only when one does not: it never saves a call. Bounded: the answers nobody got again for longest go first.
 * Kept as they are, without a copy, unless `copy` makes one.
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

export interface StaleCacheOptions extends StepOptions {
  /** What is older than this is not given. */
  maxAgeMs: Duration
  /** Answers kept at most. Default: 1,000. */
  size?: number
  /** What a call asks for; nothing: it is not kept. Default: its `cacheKey`. */
  key?: (options: RunOptions) => string | undefined
  /** Makes a copy of what is kept and of what is given, for callers who change what they get. */
  copy?: <T>(value: T) => T
  /** Default: the system's clock. */
  clock?: Clock
}

export interface StaleCache extends FallbackStep {
  /** Answers kept now. */
  readonly size: number
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

export function staleCache(options: StaleCacheOptions): StaleCache {
  const { name, on, maxAgeMs, size, key, copy, clock } = validate(
    'staleCache',
    options,
    readOptions,
  )
  /** In the order in which they were last kept: a map remembers it. */
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
      // Half of a stream cannot be given twice.
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
