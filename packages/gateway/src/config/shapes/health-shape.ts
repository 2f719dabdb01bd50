/** `health`: whether readiness fails while this process is overloaded. */
import { duration, integer, number, object, optional, together } from 'spillway/options'

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

const share = () => optional(number({ min: 0.01, max: 1 }))

const readSignals = together(
  object({
    maxInFlight: optional(integer({ min: 1 })),
    cpu: share(),
    memory: share(),
    loopUtilization: share(),
    loopDelayMs: optional(duration({ min: 1 })),
  }),
  (signals, path, problems) => {
    if (Object.values(signals).some((limit) => limit !== undefined)) return
    const names = Object.keys(DEFAULT_SIGNALS).join(', ')
    problems.push({ path, message: `must set at least one of ${names}` })
  },
)

export const readHealth = object({
  overload: optional(
    object({
      pressure: optional(readSignals, DEFAULT_SIGNALS),
      at: optional(number({ min: 0.01 }), 1),
      forMs: optional(duration({ min: 0 }), 10_000),
    }),
  ),
})
