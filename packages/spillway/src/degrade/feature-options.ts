/** Options of features: which there are, and when they are switched off. */

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

/** From the most important to the least. Load never switches critical ones off. */
export const IMPORTANCES = ['critical', 'high', 'normal', 'low', 'optional'] as const
/** Importance of a feature. Less important ones are switched off first. */
export type Importance = (typeof IMPORTANCES)[number]

/** The level when the most important feature that is off has this importance; `full` if none is. */
export const LEVEL_OF = {
  optional: 'no-extras',
  low: 'no-analytics',
  normal: 'read-only',
  high: 'cached',
  critical: 'maintenance',
} as const satisfies Record<Importance, string>

/** How far a pod has degraded, from `normal` to the fewest features. */
export type DegradationLevel = 'full' | (typeof LEVEL_OF)[Importance]

/** Options of one feature. */
export interface FeatureOptions {
  /** How important the feature is: less important ones are switched off first. */
  importance: Importance
  /** What it needs, by the names of `dependencies`. */
  dependsOn?: readonly string[]
  /** Status of a dependency from which the feature is off. Default: `unavailable`. */
  offWhen?: 'degraded' | 'unavailable'
}

/** Options of `createFeatureManager()`. */
export interface FeatureManagerOptions {
  /** The features, by name. */
  features?: Readonly<Record<string, FeatureOptions>>
  /** Downstreams that features depend on, by name. Default: none. */
  dependencies?: Readonly<Record<string, Dependency>>
  /**
   * Fractions of CPU or memory above which features are off. Default: 0.7 low, 0.8 normal, 0.9
   * high.
   */
  thresholds?: {
    /** Load from which features of low importance are switched off. */
    low?: number
    /** Load from which features of normal importance are switched off. */
    normal?: number
    /** Load from which features of high importance are switched off. */
    high?: number
  }
  /** The load of this pod. Default: measured by Node. */
  load?: () => PodLoad
  /** A further load figure, such as that of a load shedder; 1 is its limit. */
  pressure?: PressureSource
  /** How far the load has to be below a threshold before features return. Default: 0.05. */
  margin?: number
  /** How long a recovery has to last. Default: 10 seconds. */
  holdMs?: Duration
  /** How often the state is evaluated. Default: 1 second. */
  everyMs?: Duration
  /** Default: the system clock. */
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
