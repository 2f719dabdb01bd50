/**
 * Counts of single seconds, made readable: a moving mean, so that figures and the drawn flow do not jump, and a
 * call every few seconds is not a flicker.
 */
import type { Flow, GuardTick, Messages } from '../wire'

export interface Rates {
  calls: number
  attempts: number
  /** By outcome of an attempt. */
  outcomes: Record<string, number>
  /** By `stage code`. */
  refused: Record<string, number>
  /** By step and reason, as `pairKey` joins them. */
  fallbacks: Record<string, number>
}

/** What part of the newest second goes into the mean. */
const WEIGHT = 0.35
/** Less than this a second is nothing. */
const NOTHING = 0.05

type SomeFlow = Pick<Flow, 'calls' | 'refused'> &
  Partial<Flow> & { fallbacks?: GuardTick['fallbacks'] }

export class RateBook {
  readonly #rates = new Map<string, Rates>()

  of(key: string): Rates | undefined {
    return this.#rates.get(key)
  }

  clear(): void {
    this.#rates.clear()
  }

  see({ sinceMs, guards }: Messages['guards']): void {
    const seen = new Set<string>()
    for (const { name, flow, fallbacks, lanes } of guards) {
      this.#see(name, { ...flow, fallbacks }, sinceMs, seen)
      for (const lane of lanes) {
        if (lane.flow !== undefined) this.#see(pairKey(name, lane.lane), lane.flow, sinceMs, seen)
      }
    }
    // Guards and lanes that are not told of any more.
    for (const key of this.#rates.keys()) if (!seen.has(key)) this.#rates.delete(key)
  }

  #see(key: string, flow: SomeFlow, sinceMs: number, seen: Set<string>): void {
    seen.add(key)
    const before = this.#rates.get(key)
    const a = (count: number) => (count * 1_000) / Math.max(1, sinceMs)
    const refused: Record<string, number> = {}
    for (const { stage, code, count } of flow.refused) refused[`${stage} ${code}`] = a(count)
    const outcomes: Record<string, number> = {}
    for (const [outcome, count] of Object.entries(flow.outcomes ?? {})) outcomes[outcome] = a(count)
    const fallbacks: Record<string, number> = {}
    for (const { step, reason, count } of flow.fallbacks ?? []) {
      fallbacks[pairKey(step, reason)] = a(count)
    }
    this.#rates.set(key, {
      calls: mix(before?.calls, a(flow.calls)),
      attempts: mix(before?.attempts, a(flow.attempts ?? 0)),
      outcomes: mixAll(before?.outcomes, outcomes),
      refused: mixAll(before?.refused, refused),
      fallbacks: mixAll(before?.fallbacks, fallbacks),
    })
  }
}

/** Calls that began: those refused were begun, even if their mean has not come down as far as that of all calls. */
export function callsOf({ calls, refused }: Pick<Rates, 'calls' | 'refused'>): number {
  return Math.max(
    calls,
    Object.values(refused).reduce((sum, rate) => sum + rate, 0),
  )
}

/** Two names as one; neither says where the other begins. */
export function pairKey(one: string, other: string): string {
  return JSON.stringify([one, other])
}

function mix(before: number | undefined, now: number): number {
  if (before === undefined) return now
  const mean = before + (now - before) * WEIGHT
  return mean < NOTHING && now === 0 ? 0 : mean
}

function mixAll(
  before: Record<string, number> | undefined,
  now: Record<string, number>,
): Record<string, number> {
  const mixed: Record<string, number> = {}
  for (const key of new Set([...Object.keys(before ?? {}), ...Object.keys(now)])) {
    const mean = mix(before === undefined ? undefined : (before[key] ?? 0), now[key] ?? 0)
    if (mean >= NOTHING) mixed[key] = mean
  }
  return mixed
}
