/**
 * The refusal of a load shedder: the rule that refused the call, the signal behind it, and for both the value, the
 * threshold and the option that sets it. The message is written when it is read.
 */
import { counted, type Details, inMs, SpillwayError } from '../../core/errors.js'
import { PRIORITIES } from '../../core/options/priority.js'
import { type CheckedShed, SLA_SHARE } from './options.js'
import type { SampledSignal } from './pressure-gauge.js'

/** Why a call is refused. */
export type ShedReason =
  /** `maxQueue` or `maxInFlight` is reached. */
  | 'queue'
  | 'inFlight'
  /** The pressure is above the limit of its tier. */
  | 'tier'
  /** The pressure is above the limit of its priority. */
  | 'priority'
  /** It belongs to the share of its priority that is refused under this overload. */
  | 'overload'
  /** It could not end before its deadline. */
  | 'deadline'

/** A reading that a load shedder bases its decisions on. */
export type Signal = SampledSignal | 'queue' | 'inFlight'

/** Inputs of the decision to refuse a call. */
export interface ShedFacts {
  /** Name of the guard or the load shedder. */
  readonly name: string
  /** Where its options are: `shed.` for a guard, nothing for a load shedder. */
  readonly prefix: 'shed.' | ''
  readonly options: CheckedShed
  readonly reason: Exclude<ShedReason, 'queue' | 'inFlight'>
  readonly retryAfterMs: number
  /** 0 is critical. */
  readonly importance: number
  readonly tier: string | undefined
  readonly waiting: number
  /** The highest signal and its value divided by its limit, which is the pressure. */
  readonly highest: Signal | undefined
  readonly pressure: number
  readonly overload: number
  /** Time that the call needs, judging by the last ones, and time that it has left. */
  readonly neededMs: number
  readonly leftMs: number
}

export function shedError(facts: ShedFacts): SpillwayError {
  const { retryAfterMs, reason } = facts
  return new SpillwayError({
    code: 'SHED',
    stage: 'shed',
    scope: 'local',
    retryAfterMs,
    details: detailsOf(facts),
    explain: EXPLAIN[reason],
  })
}

/** `maxQueue` is reached. Kept short, because most refusals under overload are of this kind. */
export function shedByQueueError(
  name: string,
  prefix: ShedFacts['prefix'],
  waiting: number,
  maxQueue: number,
  retryAfterMs: number,
): SpillwayError {
  const option = prefix === '' ? 'maxQueue' : 'shed.maxQueue'
  return new SpillwayError({
    code: 'SHED',
    stage: 'shed',
    scope: 'local',
    retryAfterMs,
    details: { name, reason: 'queue', signal: 'queue', option, waiting, maxQueue },
    explain: EXPLAIN.queue,
  })
}

/** `maxInFlight` is reached. */
export function shedInFlightError(
  name: string,
  prefix: ShedFacts['prefix'],
  inFlight: number,
  maxInFlight: number,
  retryAfterMs: number,
): SpillwayError {
  const option = prefix === '' ? 'maxInFlight' : 'shed.maxInFlight'
  const pressure = inFlight / maxInFlight
  const signal = 'inFlight'
  return new SpillwayError({
    code: 'SHED',
    stage: 'shed',
    scope: 'local',
    retryAfterMs,
    details: { name, reason: 'inFlight', signal, option, inFlight, maxInFlight, pressure },
    explain: EXPLAIN.inFlight,
  })
}

function detailsOf(facts: ShedFacts): Details {
  const { name, prefix, reason, waiting, pressure, overload } = facts
  if (reason === 'deadline') {
    const { neededMs, leftMs } = facts
    return { name, reason, option: `${prefix}inTime`, neededMs, leftMs, waiting }
  }
  return { name, reason, ...ruleOf(facts), pressure, overload, ...signalOf(facts) }
}

/** The rule for a tier or a priority, with its threshold. */
function ruleOf({ prefix, options, reason, importance, tier }: ShedFacts): Details {
  if (reason === 'tier') {
    const listed = tier !== undefined && options.tiers?.has(tier) === true ? tier : '*'
    return { option: `${prefix}tiers.${listed}`, limit: options.tiers?.get(listed) ?? 0 }
  }
  const priority = PRIORITIES[importance] as 'high' | 'normal' | 'low'
  return reason === 'priority'
    ? { option: `${prefix}priorities.${priority}`, limit: options.priorities[priority] }
    : { option: `${prefix}weights.${priority}`, weight: options.weights[priority] }
}

/** The option of each signal. */
const OPTION = {
  queue: 'maxQueue',
  inFlight: 'maxInFlight',
  rps: 'maxRps',
  latency: 'slaMs',
  cpu: 'cpu',
  memory: 'memory',
  loopUtilization: 'loopUtilization',
  loopDelay: 'loopDelayMs',
} as const satisfies Record<Signal, keyof CheckedShed>

function signalOf({ prefix, options, highest, pressure }: ShedFacts): Details {
  if (highest === undefined) return { signal: 'none' }
  const threshold = (options[OPTION[highest]] as number) * (highest === 'latency' ? SLA_SHARE : 1)
  const value = pressure * threshold
  return { signal: highest, value, threshold, signalOption: `${prefix}${OPTION[highest]}` }
}

const figure = (value: unknown) => String(Math.round(Number(value) * 1_000) / 1_000)

/** Each signal with its value and its threshold. */
const SIGNAL: Record<string, (details: Details) => string> = {
  queue: (details) => `queue length ${figure(details.value)} (${thresholdOf(details)})`,
  inFlight: (details) =>
    `${counted(figure(details.value), 'calls')} in flight (${thresholdOf(details)})`,
  rps: (details) =>
    `${counted(figure(details.value), 'calls')} per second (${thresholdOf(details)})`,
  latency: ({ value, threshold, signalOption }) =>
    `95th percentile of the latency ${inMs(value)} (${SLA_SHARE} of ${signalOption}: ${inMs(threshold)})`,
  cpu: (details) => `CPU at ${figure(details.value)} (${thresholdOf(details)})`,
  memory: (details) => `memory at ${figure(details.value)} (${thresholdOf(details)})`,
  loopUtilization: (details) =>
    `event loop busy for ${figure(details.value)} of the time (${thresholdOf(details)})`,
  loopDelay: ({ value, threshold, signalOption }) =>
    `event loop delay ${inMs(value)} (${signalOption}: ${inMs(threshold)})`,
  none: () => 'no signal is high any more',
}

function thresholdOf({ signalOption, threshold }: Details): string {
  return `${signalOption}: ${figure(threshold)}`
}

const signalText = (details: Details) => SIGNAL[String(details.signal)]?.(details) ?? ''

const EXPLAIN: Record<ShedReason, (details: Details) => string> = {
  queue: ({ name, option, waiting, maxQueue }) =>
    `${name}: shed at queue length ${waiting} (${option}: ${maxQueue}); raise it or add pods`,
  inFlight: ({ name, option, inFlight, maxInFlight }) =>
    `${name}: shed with ${counted(inFlight, 'calls')} in flight (${option}: ${maxInFlight}); raise it or add pods`,
  tier: (details) =>
    `${details.name}: shed by tier, pressure ${figure(details.pressure)} is above ${details.option} (${figure(details.limit)}): ${signalText(details)}`,
  priority: (details) =>
    `${details.name}: shed by priority, pressure ${figure(details.pressure)} reached ${details.option} (${figure(details.limit)}): ${signalText(details)}`,
  overload: (details) =>
    `${details.name}: shed a share of the calls, overload ${figure(details.overload)} times ${details.option} (${figure(details.weight)}): ${signalText(details)}`,
  deadline: ({ name, option, neededMs, leftMs, waiting }) =>
    `${name}: shed, because the call has ${inMs(leftMs)} left and would take about ${inMs(neededMs)} behind ${counted(waiting, 'waiting calls')} (${option})`,
}
