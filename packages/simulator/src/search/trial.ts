/** One run of a search: a trigger of some size and duration under some load, and whether the fleet recovers from it. */
import type { GuardOptions } from 'spillway'
import { simulateOnce } from '../run/simulate.js'
import type { ClientPlan, Scenario, ScenarioEvent } from '../scenario/scenario.js'

/**
 * Kind of the trigger. `slow`: the vendor takes `size` times as long. `fail`: this share of its calls fails. `load`:
 * clients send `size` times as many requests.
 */
export type TriggerKind = 'slow' | 'fail' | 'load'

/** All kinds of triggers. */
export const TRIGGER_KINDS: readonly TriggerKind[] = ['slow', 'fail', 'load']

/** One run of a search. */
export interface Trial {
  /** Pods, vendor and clients. */
  readonly scenario: Scenario
  /** Options of the guard, in place of the scenario's. */
  readonly guard: GuardOptions
  /** Seed of the random numbers. */
  readonly seed: number
  /** Kind of the trigger. */
  readonly kind: TriggerKind
  /** Requests, as a share of the scenario's. */
  readonly load: number
  /** Factor of the trigger, or share for `fail`. Undefined: without a trigger, for comparison. */
  readonly size: number | undefined
  /** Duration of the trigger. */
  readonly durationMs: number
  /** Time between the end of the trigger and the measurement. */
  readonly recoverMs: number
}

/** Figures of the last seconds of a trial, after `recoverMs`. */
export interface TrialOutcome {
  /** Good answers a second. */
  readonly goodput: number
  /** Requests a second. */
  readonly offered: number
}

const WARM_UP_MS = 3_000
const MEASURE_MS = 4_000

export async function runTrial(trial: Trial): Promise<TrialOutcome> {
  const endMs = WARM_UP_MS + trial.durationMs + trial.recoverMs + MEASURE_MS
  const { series, stretchMs } = await simulateOnce(scenarioOf(trial, endMs), { seed: trial.seed })
  const first = Math.round((endMs - MEASURE_MS) / stretchMs)
  const rate = (counts: readonly number[]) => {
    const last = counts.slice(first)
    return last.reduce((sum, each) => sum + each, 0) / ((last.length * stretchMs) / 1_000)
  }
  return { goodput: rate(series.served), offered: rate(series.offered) }
}

/** The scenario with this trigger in place of its own events and bursts. */
function scenarioOf(trial: Trial, endMs: number): Scenario {
  const { scenario, guard, kind, load, size, durationMs } = trial
  const untilMs = WARM_UP_MS + durationMs
  const steady = scenario.clients
    .filter(({ burst }) => burst === undefined)
    .map(({ fromMs: _from, untilMs: _until, ...client }) => scaled(client, load))
  const clients = [...steady]
  const events: ScenarioEvent[] = []
  if (size === undefined)
    return { ...scenario, guard, clients, events, expect: [], durationMs: endMs }
  if (kind === 'load') {
    for (const client of steady) {
      const more = scaled(client, size - 1)
      clients.push({ ...more, name: `${client.name} (trigger)`, fromMs: WARM_UP_MS, untilMs })
    }
  } else {
    const vendor = kind === 'slow' ? { slow: size } : { fail: size }
    events.push({ atMs: WARM_UP_MS, vendor }, { atMs: untilMs, vendor: 'recover' })
  }
  return { ...scenario, guard, clients, events, expect: [], durationMs: endMs }
}

function scaled(client: ClientPlan, factor: number): ClientPlan {
  const { rps, callers } = client
  return {
    ...client,
    ...(rps !== undefined && { rps: rps * factor }),
    ...(callers !== undefined && { callers: Math.max(1, Math.round(callers * factor)) }),
  }
}
