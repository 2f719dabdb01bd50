/** `health`: whether readiness fails while this process is overloaded. */
import { about, duration, integer, number, object, optional, together } from 'spillway/options'

/** Signals of overload, each with the value at which the pressure is 1. At least one is set. */
export interface OverloadSignals {
  /** Requests in flight. */
  readonly maxInFlight: number | undefined
  /** Share of all cores that the process uses. */
  readonly cpu: number | undefined
  /** Share of the container's memory or of the heap limit that it uses. */
  readonly memory: number | undefined
  /** Share of the time that its event loop is busy. */
  readonly loopUtilization: number | undefined
  /** Delay of its event loop, 99th percentile. */
  readonly loopDelayMs: number | undefined
}

/** When readiness fails because of overload. */
export interface OverloadConfig {
  /** The signals; the highest counts. */
  readonly pressure: OverloadSignals
  /** Pressure from which the process is not ready. */
  readonly at: number
  /** How long the pressure must last. It is ready again after half of this time below `at`. */
  readonly forMs: number
}

/** Health checks of the gateway. */
export interface HealthConfig {
  /** Undefined: overload does not change readiness. */
  readonly overload: OverloadConfig | undefined
}

const DEFAULT_SIGNALS: OverloadSignals = {
  maxInFlight: undefined,
  cpu: undefined,
  memory: undefined,
  loopUtilization: 0.95,
  loopDelayMs: 200,
}

const share = (meaning: string) =>
  about(`${meaning} Default: not checked.`, optional(number({ min: 0.01, max: 1 })))

const readSignals = together(
  object({
    maxInFlight: about(
      'Requests in flight at which the pressure is 1. Default: not checked.',
      optional(integer({ min: 1 })),
    ),
    cpu: share(
      'CPU use of this process at which the pressure is 1, as a share of the cores it may use.',
    ),
    memory: share(
      "Used share of the container's memory or the heap limit at which the pressure is 1.",
    ),
    loopUtilization: share('Share of busy time of the event loop at which the pressure is 1.'),
    loopDelayMs: about(
      'Delay of the event loop, 99th percentile, at which the pressure is 1. Default: not checked.',
      optional(duration({ min: 1 })),
    ),
  }),
  (signals, path, problems) => {
    if (Object.values(signals).some((limit) => limit !== undefined)) return
    const names = Object.keys(DEFAULT_SIGNALS).join(', ')
    problems.push({ path, message: `must set at least one of ${names}` })
  },
)

export const readHealth = object({
  overload: about(
    'Readiness fails while the pressure on this process stays high. Default: off.',
    optional(
      object({
        pressure: about(
          'Signals of overload; the highest counts. Default: `loopUtilization` 0.95 and `loopDelayMs` 200 ms.',
          optional(readSignals, DEFAULT_SIGNALS),
        ),
        at: about('Pressure from which readiness fails.', optional(number({ min: 0.01 }), 1)),
        forMs: about(
          'How long the pressure must last. Readiness returns after half of this time below `at`.',
          optional(duration({ min: 0 }), 10_000),
        ),
      }),
    ),
  ),
})
