/** Options of a load shedder: its signals and their limits, and which calls are refused first. */
import {
  arrayOf,
  bool,
  type Check,
  type Duration,
  duration,
  func,
  integer,
  number,
  object,
  optional,
  positive,
  text,
} from '../../core/options/checks.js'
import type { Priority } from '../../core/options/priority.js'
import { about, described, schemaOf } from '../../core/options/schema.js'

/** The share of `slaMs` at which the pressure is 1. */
export const SLA_SHARE = 0.9

/** Signals and limits of a load shedder. */
export interface ShedOptions {
  /**
   * Most waiting calls. Beyond it all but critical calls are refused. Range: integers from 1. Default: not
   * checked.
   */
  maxQueue?: number
  /**
   * Most running calls. Beyond it all but critical calls are refused. Range: integers from 1. Default: not
   * checked.
   */
  maxInFlight?: number
  /** Incoming calls per second at which the pressure is 1. Range: above 0. Default: not checked. */
  maxRps?: number
  /**
   * Promised latency. The pressure is 1 when the 95th percentile reaches 0.9 of it. Range: from 1 ms. Default:
   * not checked.
   */
  slaMs?: Duration
  /** CPU use of this process at which the pressure is 1, as a share of the cores it may use. Range: 0.01 to 1. Default: not checked. */
  cpu?: number
  /** Used share of the container's memory or the heap limit at which the pressure is 1. Range: 0.01 to 1. Default: not checked. */
  memory?: number
  /** Share of busy time of the event loop at which the pressure is 1. Range: 0.01 to 1. Default: not checked. */
  loopUtilization?: number
  /**
   * Delay of the event loop at which the pressure is 1, 99th percentile of the last sample. Range: from 1 ms.
   * Default: not checked.
   */
  loopDelayMs?: Duration
  /**
   * Pressure above which a tier is refused; `*` stands for all other tiers. Range: from 0. Default: tiers make
   * no difference.
   */
  tiers?: Readonly<Record<string, number>>
  /**
   * Pressure from which a priority is refused. `true`: low from 0.8, normal from 0.85, high from 0.9. Range:
   * from 0. Default: priorities make no difference below a pressure of 1.
   */
  priorities?: true | Readonly<Partial<Record<Exclude<Priority, 'critical'>, number>>>
  /**
   * Fraction of the calls of a priority that is refused for each 1 of pressure above 1: at a pressure of 1.5, a
   * weight of 1 refuses half of them. Range: 0 to 1. Default: high 0.1, normal 0.5,
   * low 1.
   */
  weights?: Readonly<Partial<Record<Exclude<Priority, 'critical'>, number>>>
  /** Refuses calls that cannot end before their deadline, judging by recent calls. Default: false. */
  inTime?: boolean
  /** Endpoints that are never refused. Default: the usual names of health checks. */
  critical?: readonly string[]
  /** Interval at which the signals are read. Range: from 10 ms. Default: 100 ms. */
  sampleMs?: Duration
  /** Window of the latencies. Range: from 100 ms. Default: 1 second. */
  windowMs?: Duration
  /** How long the same users are refused before others are. Range: from 1 second. Default: 1 hour. */
  rotateMs?: Duration
  /** Readings that replace Node's own. Default: none. */
  sensors?: Partial<Sensors>
}

/** Sources of the signals, read once per sample. */
export interface Sensors {
  /** Share of the CPU used since the last reading. */
  cpu(): number
  /** Share of the memory used. */
  memory(): number
  /** Share of the time since the last reading that the event loop was busy. */
  loopUtilization(): number
  /** 99th percentile of the event loop's delay since the last reading, in milliseconds. */
  loopDelayMs(): number
}

const HEALTH_CHECKS = [
  '/health',
  '/health/live',
  '/health/ready',
  '/health/deep',
  '/healthz',
  '/livez',
  '/readyz',
  '/live',
  '/ready',
]

const THRESHOLDS = { high: 0.9, normal: 0.85, low: 0.8 }
const WEIGHTS = { high: 0.1, normal: 0.5, low: 1 }
const ABOVE_ALL = { high: Infinity, normal: Infinity, low: Infinity }

const share = () => optional(number({ min: 0.01, max: 1 }))
const pressure = () => number({ min: 0 })

const readTiers: Check<ReadonlyMap<string, number>> = (value, path, problems) => {
  const names = typeof value === 'object' && value !== null ? Object.keys(value) : []
  const fields = Object.fromEntries(names.map((name) => [name, pressure()]))
  return new Map(Object.entries(object(fields)(value, path, problems) ?? {}))
}
described(readTiers, () => ({ type: 'object', additionalProperties: schemaOf(pressure()) }))

const threshold = (priority: keyof typeof ABOVE_ALL) =>
  about(
    `Pressure from which calls of priority \`${priority}\` are refused. Default: never below 1.`,
    optional(pressure(), ABOVE_ALL[priority]),
  )
const readOwnThresholds = object({
  high: threshold('high'),
  normal: threshold('normal'),
  low: threshold('low'),
})

const readThresholds: Check<typeof THRESHOLDS> = (value, path, problems) => {
  return value === true ? THRESHOLDS : readOwnThresholds(value, path, problems)
}
described(readThresholds, () => ({ anyOf: [{ const: true }, schemaOf(readOwnThresholds)] }))

const weight = (priority: keyof typeof WEIGHTS) =>
  about(
    `Fraction of the calls of priority \`${priority}\` that is refused for each 1 of pressure above 1.`,
    optional(number({ min: 0, max: 1 }), WEIGHTS[priority]),
  )

/** Functions, which a file cannot contain. */
const readSensors = described(
  object({
    cpu: optional(func<Sensors['cpu']>()),
    memory: optional(func<Sensors['memory']>()),
    loopUtilization: optional(func<Sensors['loopUtilization']>()),
    loopDelayMs: optional(func<Sensors['loopDelayMs']>()),
  }),
  undefined,
)

/** Shared by the stage of a guard and the standalone shedder. */
export const shedFields = {
  maxQueue: optional(integer({ min: 1 })),
  maxInFlight: optional(integer({ min: 1 })),
  maxRps: optional(positive()),
  slaMs: optional(duration({ min: 1 })),
  cpu: share(),
  memory: share(),
  loopUtilization: share(),
  loopDelayMs: optional(duration({ min: 1 })),
  tiers: optional(readTiers),
  priorities: optional(readThresholds, ABOVE_ALL),
  weights: optional(
    object({
      high: weight('high'),
      normal: weight('normal'),
      low: weight('low'),
    }),
    WEIGHTS,
  ),
  inTime: optional(bool(), false),
  critical: optional(arrayOf(text()), HEALTH_CHECKS),
  sampleMs: optional(duration({ min: 10 }), 100),
  windowMs: optional(duration({ min: 100 }), 1_000),
  rotateMs: optional(duration({ min: 1_000 }), 3_600_000),
  sensors: optional(readSensors, {
    cpu: undefined,
    memory: undefined,
    loopUtilization: undefined,
    loopDelayMs: undefined,
  }),
}

const readShed = object(shedFields)
export type CheckedShed = ReturnType<typeof readShed>
