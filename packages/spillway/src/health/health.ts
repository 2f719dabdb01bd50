/**
 * Whether this process works (`live`), whether it accepts requests (`ready`), and the state of
 * everything (`deep`). For load balancers, orchestrators and operators. Only `live` is a reason to
 * restart.
 */

import {
  bool,
  type Duration,
  duration,
  func,
  having,
  number,
  OptionsError,
  object,
  oneOf,
  optional,
  text,
  validate,
} from '../core/options/checks.js'
import type { Clock, Timer } from '../core/time/clock.js'
import { clockOption } from '../core/time/clock-options.js'
import type { FleetReport } from '../guard/fleet/fleet-report.js'
import type { Spillway } from '../guard/spillway.js'
import { type PressureSource, readPressure } from '../local/pod-metrics/pressure.js'
import { Steady } from '../local/pod-metrics/steady.js'
import {
  type Check,
  type CheckAnswer,
  type CheckResult,
  type HealthStatus,
  runChecks,
  worstOf,
} from './checks.js'

/** Kind of a health report: alive, ready for requests, or everything in detail. */
export type HealthLevel = 'live' | 'ready' | 'deep'

/** Options of one health check. */
export interface HealthCheckOptions {
  /** The report that includes it; deep reports include all. Default: `ready`. */
  level?: HealthLevel
  /** Whether its failure makes the report unhealthy or only degraded. Default: true. */
  critical?: boolean
  /**
   * Time limit of the check. Range: from 1 ms to the default. Default: 1 second for `live`, 5 for `ready`, 30
   * for `deep`.
   */
  timeoutMs?: Duration
}

/** Options of `createHealth()`. */
export interface HealthOptions {
  /** Adds the state of the fleet: breakers, limits, pods, the store. Default: none. */
  spillway?: Pick<Spillway, 'fleet' | 'snapshot'>
  /** The pod is not ready until this function has ended. Its failure is reported. Default: none. */
  warmUp?: () => unknown
  /** The pod is not ready before this time has passed. Range: from 0 ms. Default: 0. */
  warmUpMs?: Duration
  /** The pod is not ready while its pressure stays above a limit. Default: not checked. */
  overload?: {
    /** Source of the pressure on this pod. */
    pressure: PressureSource
    /** Pressure from which the pod is not ready, as a fraction of its limit. Range: from 0. Default: 1. */
    at?: number
    /** How long the pressure must last. Range: from 0 ms. Default: 10 seconds. */
    forMs?: Duration
  }
  /** The clock to read and to set timers with. Default: the system clock. */
  clock?: Clock
}

/** A health report: a status, and the checks it is based on. */
export interface HealthReport {
  /** The worst status of the checks. */
  status: HealthStatus
  /** Whether it accepts requests, and if not, why. */
  ready: boolean
  /** Why the status is not healthy. */
  reason: 'warming-up' | 'draining' | 'overloaded' | 'unhealthy' | undefined
  /** When the report was made, as an ISO 8601 date in UTC. */
  timestamp: string
  /** The checks it is based on. */
  checks: CheckResult[]
  /** In ready and deep reports, if `spillway` is set. */
  fleet?: FleetReport
}

/** Health reports of a pod. Created by `createHealth()`. */
export interface Health {
  /** Whether the process should keep running. */
  live(): Promise<HealthReport>
  /** Whether the pod should get requests. */
  ready(): Promise<HealthReport>
  /** Everything in detail, for operators. */
  deep(): Promise<HealthReport>
  /**
   * Adds a check. It reports a problem by throwing, or by returning false, `degraded` or
   * `unhealthy`.
   */
  register(
    name: string,
    run: (signal: AbortSignal) => CheckAnswer | Promise<CheckAnswer>,
    options?: HealthCheckOptions,
  ): void
  /** Not ready from now on. Closing the spillway has the same effect. */
  drain(): void
  /** Stops its timer. */
  close(): void
}

/** Longest time of a report. */
const LONGEST_MS: Record<HealthLevel, number> = { live: 1_000, ready: 5_000, deep: 30_000 }
/** The pressure is read at least this often. */
const PRESSURE_POLL_MS = 1_000

const readOptions = object({
  spillway: optional(
    having<Pick<Spillway, 'fleet' | 'snapshot'>>('a spillway', 'fleet', 'snapshot'),
  ),
  warmUp: optional(func<() => unknown>()),
  warmUpMs: optional(duration({ min: 0 }), 0),
  overload: optional(
    object({
      pressure: readPressure,
      at: optional(number({ min: 0 }), 1),
      forMs: optional(duration({ min: 0 }), 10_000),
    }),
  ),
  clock: clockOption,
})

const readCheck = object({
  level: optional(oneOf('live', 'ready', 'deep'), 'ready'),
  critical: optional(bool(), true),
  timeoutMs: optional(duration({ min: 1 })),
})

/**
 * Creates the health reports of a pod: live, ready and deep.
 *
 * @example
 * const health = createHealth({ spillway })
 * health.register('database', () => database.ping())
 * const { status } = await health.ready()
 */
export function createHealth(options: HealthOptions = {}): Health {
  return new PodHealth(validate('health', options, readOptions))
}

class PodHealth implements Health {
  readonly #options: ReturnType<typeof readOptions>
  readonly #clock: Clock
  readonly #checks: Record<HealthLevel, Check[]> = { live: [], ready: [], deep: [] }
  readonly #readyAtMs: number
  #warming = false
  #draining = false
  #fleet: FleetReport | undefined
  readonly #overloaded: Steady | undefined
  #pressureTimer: Timer | undefined
  /** Requests that arrive while a report is being made get that report. */
  readonly #pendingReports: Partial<Record<HealthLevel, Promise<HealthReport>>> = {}

  constructor(options: ReturnType<typeof readOptions>) {
    this.#options = options
    const { clock, warmUpMs, warmUp, overload, spillway } = options
    this.#clock = clock
    this.#readyAtMs = clock.now() + warmUpMs
    if (warmUp !== undefined) void this.#warmUp(warmUp)
    if (overload !== undefined) {
      const { forMs } = overload
      this.#overloaded = new Steady({ riseMs: forMs, fallMs: forMs / 2 })
      this.#pollPressure()
    }
    if (spillway !== undefined) this.#addFleet(spillway)
  }

  register(
    name: string,
    run: (signal: AbortSignal) => CheckAnswer | Promise<CheckAnswer>,
    options: HealthCheckOptions = {},
  ): void {
    validate('health.register.name', name, text())
    validate('health.register.run', run, func())
    const { level, critical, timeoutMs } = validate(`health.register(${name})`, options, readCheck)
    const path = `health.register(${name})`
    if (Object.values(this.#checks).some((all) => all.some((each) => each.name === name))) {
      throw new OptionsError([{ path, message: 'is the name of another check' }])
    }
    const longestMs = LONGEST_MS[level]
    if (timeoutMs !== undefined && timeoutMs > longestMs) {
      const message = `must be at most ${longestMs} ms for level '${level}'`
      throw new OptionsError([{ path: `${path}.timeoutMs`, message }])
    }
    this.#checks[level].push({ name, critical, timeoutMs: timeoutMs ?? longestMs, run })
  }

  live(): Promise<HealthReport> {
    return this.#report('live')
  }

  ready(): Promise<HealthReport> {
    return this.#report('ready')
  }

  deep(): Promise<HealthReport> {
    return this.#report('deep')
  }

  drain(): void {
    this.#draining = true
  }

  close(): void {
    this.#pressureTimer?.cancel()
    this.#pressureTimer = undefined
  }

  #report(level: HealthLevel): Promise<HealthReport> {
    this.#pendingReports[level] ??= this.#make(level).finally(() => {
      delete this.#pendingReports[level]
    })
    return this.#pendingReports[level]
  }

  async #make(level: HealthLevel): Promise<HealthReport> {
    const { live, ready, deep } = this.#checks
    const selected = { live, ready, deep: [...live, ...ready, ...deep] }[level]
    const checks = await runChecks(selected, this.#clock)
    const status = worstOf(checks.map((each) => each.status))
    // A liveness probe does not ask whether the process accepts requests.
    const timestamp = new Date(this.#clock.wallMs()).toISOString()
    if (level === 'live') {
      return { status, ready: status !== 'unhealthy', reason: undefined, timestamp, checks }
    }
    const reason = this.#notReadyReason() ?? (status === 'unhealthy' ? 'unhealthy' : undefined)
    const isReady = reason === undefined
    const report: HealthReport = {
      status: isReady ? status : 'unhealthy',
      ready: isReady,
      reason,
      timestamp,
      checks,
    }
    if (this.#fleet !== undefined) report.fleet = this.#fleet
    return report
  }

  #notReadyReason(): HealthReport['reason'] {
    const { spillway } = this.#options
    if (this.#draining || spillway?.snapshot().draining === true) return 'draining'
    if (this.#warming || this.#clock.now() < this.#readyAtMs) return 'warming-up'
    return this.#overloaded?.on === true ? 'overloaded' : undefined
  }

  async #warmUp(warmUp: () => unknown): Promise<void> {
    this.#warming = true
    let problem: string | undefined
    this.register('warm-up', () => {
      if (problem !== undefined) throw new Error(problem)
      return undefined
    })
    try {
      await warmUp()
      this.#warming = false
    } catch (error) {
      problem = error instanceof Error ? error.message : String(error)
    }
  }

  /**
   * Without the store pods continue by their outage rules. That is a degradation but no reason to
   * take the pod out.
   */
  #addFleet(spillway: Pick<Spillway, 'fleet'>): void {
    const run = async (): Promise<CheckAnswer> => {
      const fleet = await spillway.fleet()
      this.#fleet = fleet
      const open = fleet.guards.flatMap(({ name, breakers }) =>
        breakers
          .filter(({ state }) => state !== 'closed')
          .map(({ lane, state }) => ({ guard: name, lane, state })),
      )
      const well = open.length === 0 && (fleet.store === 'shared' || fleet.store === 'memory')
      return { status: well ? 'healthy' : 'degraded', details: { store: fleet.store, open } }
    }
    this.register('fleet', run, { critical: false })
  }

  #pollPressure(): void {
    const { overload } = this.#options
    if (overload === undefined) return
    const { pressure, at, forMs } = overload
    this.#overloaded?.see(pressure() >= at, this.#clock.now())
    const everyMs = Math.min(PRESSURE_POLL_MS, Math.max(10, forMs / 10))
    this.#pressureTimer = this.#clock.schedule(everyMs, () => this.#pollPressure())
    this.#pressureTimer.unref()
  }
}
