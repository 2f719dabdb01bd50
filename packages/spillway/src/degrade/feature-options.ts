/** How a user writes down which features there are, and when they go. */

import {
  arrayOf,
  type Check,
  type Duration,
  duration,
  func,
  number,
  object,
  oneOf,
  optional,
  text,
  together,
} from '../core/options/checks.js'
import type { Clock } from '../core/time/clock.js'
import { clockOption } from '../core/time/clock-options.js'
import { type PressureSource, readPressure } from '../local/pod-metrics/pressure.js'
import { type Dependency, readDependency } from './dependencies.js'
import type { PodLoad } from './pod-load.js'

/** From the most important down. Critical ones are never switched off by load. */
export const IMPORTANCES = ['critical', 'high', 'normal', 'low', 'optional'] as const
export type Importance = (typeof IMPORTANCES)[number]

/** What is left when the most important feature that is off has this importance; `full` when none is. */
export const LEVEL_OF = {
  optional: 'no-extras',
  low: 'no-analytics',
  normal: 'read-only',
  high: 'cached',
  critical: 'maintenance',
} as const satisfies Record<Importance, string>

export type DegradationLevel = 'full' | (typeof LEVEL_OF)[Importance]

export interface FeatureOptions {
  importance: Importance
  /** What it needs, by the names of `dependencies`. */
  dependsOn?: readonly string[]
  /** It goes when something it needs is no better than this. Default: `unavailable`. */
  offWhen?: 'degraded' | 'unavailable'
}

export interface FeatureManagerOptions {
  features?: Readonly<Record<string, FeatureOptions>>
  dependencies?: Readonly<Record<string, Dependency>>
  /** Fractions of CPU or memory over which features go. Default: 0.7 low, 0.8 normal, 0.9 high. */
  thresholds?: { low?: number; normal?: number; high?: number }
  /** How loaded this pod is. Default: what the system says of this process. */
  load?: () => PodLoad
  /** Something that counts as load as well: a load shedder, whose 1 is as much as it can bear. */
  pressure?: PressureSource
  /** Load has to be so far under a threshold before what it took comes back. Default: 0.05. */
  margin?: number
  /** What is well again has to be so for this long. Default: 10 seconds. */
  holdMs?: Duration
  /** How often it looks. Default: 1 second. */
  everyMs?: Duration
  /** Default: the system's clock. */
  clock?: Clock
}

const fraction = () => number({ min: 0, max: 1 })

export const readFeature = object({
  importance: oneOf(...IMPORTANCES),
  dependsOn: optional(arrayOf(text()), []),
  offWhen: optional(oneOf('degraded', 'unavailable'), 'unavailable'),
})

export const readOptions = object({
  features: optional(recordOf(readFeature), {}),
  dependencies: optional(recordOf(readDependency), {}),
  thresholds: optional(
    together(
      object({
        low: optional(fraction(), 0.7),
        normal: optional(fraction(), 0.8),
        high: optional(fraction(), 0.9),
      }),
      ({ low, normal, high }, path, problems) => {
        if (low <= normal && normal <= high) return
        problems.push({ path, message: 'must not fall from low over normal to high' })
      },
    ),
    { low: 0.7, normal: 0.8, high: 0.9 },
  ),
  load: optional(func<() => PodLoad>()),
  pressure: optional(readPressure),
  margin: optional(number({ min: 0, max: 0.5 }), 0.05),
  holdMs: optional(duration({ min: 0 }), 10_000),
  everyMs: optional(duration({ min: 10 }), 1_000),
  clock: clockOption,
})

function recordOf<T>(check: Check<T>): Check<Record<string, T>> {
  return (value, path, problems) => {
    if (typeof value !== 'object' || value === null || Array.isArray(value)) {
      problems.push({ path, message: 'must be an object, by name' })
      return {}
    }
    const entries = Object.entries(value).map(([name, each]) => [
      name,
      check(each, `${path}.${name}`, problems),
    ])
    return Object.fromEntries(entries)
  }
}
