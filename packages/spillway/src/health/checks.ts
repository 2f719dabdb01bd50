/**
 * Runs checks in parallel, each with a time limit. A check that hangs, throws or is slow is
 * reported as such, and delays neither the others nor the report. A check that is still running
 * from the last time is not started again.
 */
import type { Clock } from '../core/time/clock.js'

/** Status of a check or of a report. */
export type HealthStatus = 'healthy' | 'degraded' | 'unhealthy'

/** What a check may return. Undefined: healthy. */
export type CheckAnswer =
  | undefined
  | boolean
  | HealthStatus
  | { status?: HealthStatus; details?: unknown }

/** Result of one health check. */
export interface CheckResult {
  /** Name of the check. */
  name: string
  /** Its status. */
  status: HealthStatus
  /** Milliseconds that the check took. */
  latencyMs: number
  /** What the check reported about itself. */
  details?: unknown
  /** Why, if it is not healthy. */
  error?: string
}

export interface Check {
  readonly name: string
  /** Whether this pod cannot work without it. If false, its failure is only a degradation. */
  readonly critical: boolean
  readonly timeoutMs: number
  run(signal: AbortSignal): unknown
  /** Since when it has been running, if it is. */
  runningSinceMs?: number | undefined
}

export function runChecks(checks: readonly Check[], clock: Clock): Promise<CheckResult[]> {
  return Promise.all(checks.map((check) => runCheck(check, clock)))
}

function runCheck(check: Check, clock: Clock): Promise<CheckResult> {
  const { name, timeoutMs } = check
  const startMs = clock.now()
  if (check.runningSinceMs !== undefined) {
    const forMs = startMs - check.runningSinceMs
    return Promise.resolve(failed(check, forMs, `still runs, for ${Math.round(forMs)} ms`))
  }
  check.runningSinceMs = startMs
  const stop = new AbortController()
  const work = Promise.resolve()
    .then(() => check.run(stop.signal) as CheckAnswer | Promise<CheckAnswer>)
    .finally(() => {
      check.runningSinceMs = undefined
    })
  return new Promise((resolve) => {
    const timer = clock.schedule(timeoutMs, () => {
      stop.abort(new Error(`${name}: no answer within ${timeoutMs} ms`))
      resolve(failed(check, clock.now() - startMs, `no answer within ${timeoutMs} ms`))
    })
    work.then(
      (answer) => {
        timer.cancel()
        resolve(resultOf(check, answer, clock.now() - startMs))
      },
      (error) => {
        timer.cancel()
        resolve(failed(check, clock.now() - startMs, messageOf(error)))
      },
    )
  })
}

function resultOf(check: Check, answer: CheckAnswer, latencyMs: number): CheckResult {
  if (answer === false) return failed(check, latencyMs, 'the check returned false')
  const { status = 'healthy', details } =
    typeof answer === 'object' && answer !== null ? answer : { status: statusIn(answer) }
  const result: CheckResult = { name: check.name, status: bounded(check, status), latencyMs }
  if (details !== undefined) result.details = details
  return result
}

function statusIn(answer: Exclude<CheckAnswer, object>): HealthStatus {
  return typeof answer === 'string' ? answer : 'healthy'
}

function failed(check: Check, latencyMs: number, error: string): CheckResult {
  return { name: check.name, status: bounded(check, 'unhealthy'), latencyMs, error }
}

function bounded({ critical }: Check, status: HealthStatus): HealthStatus {
  return status === 'unhealthy' && !critical ? 'degraded' : status
}

/** Error messages can be any value, but a report needs text. */
function messageOf(error: unknown): string {
  try {
    return error instanceof Error ? error.message : String(error)
  } catch {
    return 'an error that cannot be read'
  }
}

const WORST: readonly HealthStatus[] = ['unhealthy', 'degraded', 'healthy']

export function worstOf(statuses: readonly HealthStatus[]): HealthStatus {
  return WORST.find((status) => statuses.includes(status)) ?? 'healthy'
}
