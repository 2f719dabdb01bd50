/** Options of features: which there are, and when they are switched off. */

import {
  arrayOf,
  type Duration,
  duration,
  func,
  number,
  object,
  oneOf,
  optional,
  recordOf,
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
  /** Downstreams it needs, by the names of `dependencies`. Default: none. */
  dependsOn?: readonly string[]
  /** Status of a dependency from which the feature is off. Default: `unavailable`. */
  offWhen?: 'degraded' | 'unavailable'
}

/** Options of `createFeatureManager()`. */
export interface FeatureManagerOptions {
  /** The features, by name. Default: none; add them with `register`. */
  features?: Readonly<Record<string, FeatureOptions>>
  /** Downstreams that features depend on, by name. Default: none. */
  dependencies?: Readonly<Record<string, Dependency>>
  /** Fractions of CPU or memory above which features are off. Default: those of each field. */
  thresholds?: {
    /** Fraction from which features of low importance are off. Range: 0 to 1. Default: 0.7. */
    low?: number
    /** Fraction from which features of normal importance are off. Range: 0 to 1. Default: 0.8. */
    normal?: number
    /** Fraction from which features of high importance are off. Range: 0 to 1. Default: 0.9. */
    high?: number
  }
  /** The load of this pod. Default: measured by Node. */
  load?: () => PodLoad
  /** A further load figure, such as that of a load shedder; 1 is its limit. Default: none. */
  pressure?: PressureSource
  /**
   * How far the load has to be below a threshold before features return, as a fraction. Range: 0 to 0.5.
   * Default: 0.05.
   */
  margin?: number
  /** How long a recovery has to last. Range: from 0 ms. Default: 10 seconds. */
  holdMs?: Duration
  /** Interval at which the state is evaluated. Range: from 10 ms. Default: 1 second. */
  everyMs?: Duration
  /** The clock to read and to set timers with. Default: the system clock. */
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
        problems.push({ path, message: 'must not decrease from low to normal to high' })
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
