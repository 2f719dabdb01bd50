/** Smooths counts of single seconds by a moving mean, so that figures and the drawn flow do not jump. */
import type { Flow, GuardTick, Messages } from '../wire'

export interface Rates {
  /** Calls that arrived. */
  calls: number
  /** Calls that were refused or started; a queued call counts when it leaves the queue. */
  decided: number
  attempts: number
  /** By outcome of an attempt. */
  outcomes: Record<string, number>
  /** By `stage code`. */
  refused: Record<string, number>
  /** By step and reason, as `pairKey` joins them. */
  fallbacks: Record<string, number>
}

/** Weight of the newest second in the moving average. */
const WEIGHT = 0.35
/** A lower rate is shown as zero. */
const NOTHING = 0.05

type SomeFlow = Pick<Flow, 'calls' | 'refused'> &
  Partial<Flow> & { fallbacks?: GuardTick['fallbacks'] }

interface Known {
  rates: Rates
  /** At the end of the tick. */
  waiting: number
}

export class RateTracker {
  readonly #known = new Map<string, Known>()

  of(key: string): Rates | undefined {
    return this.#known.get(key)?.rates
  }

  clear(): void {
    this.#known.clear()
  }

  see({ sinceMs, guards }: Messages['guards']): void {
    const seen = new Set<string>()
    for (const { name, flow, fallbacks, lanes, queue } of guards) {
      seen.add(name)
      this.#see(name, { ...flow, fallbacks }, queue.waiting, sinceMs)
      for (const { lane, flow, waiting } of lanes) {
        if (flow === undefined) continue
        const key = pairKey(name, lane)
        seen.add(key)
        this.#see(key, flow, waiting, sinceMs)
      }
    }
    // Guards and lanes that the feed no longer contains.
    for (const key of this.#known.keys()) if (!seen.has(key)) this.#known.delete(key)
  }

  #see(key: string, flow: SomeFlow, waiting: number, sinceMs: number): void {
    const known = this.#known.get(key)
    const before = known?.rates
    const a = (count: number) => (count * 1_000) / Math.max(1, sinceMs)
    const refused: Record<string, number> = {}
    let refusals = 0
    for (const { stage, code, count } of flow.refused) {
      refused[`${stage} ${code}`] = a(count)
      refusals += count
    }
    // A retry that is refused was a call before.
    const decided = Math.max(refusals, flow.calls + (known?.waiting ?? waiting) - waiting)
    const outcomes: Record<string, number> = {}
    for (const [outcome, count] of Object.entries(flow.outcomes ?? {})) outcomes[outcome] = a(count)
    const fallbacks: Record<string, number> = {}
    for (const { step, reason, count } of flow.fallbacks ?? []) {
      fallbacks[pairKey(step, reason)] = a(count)
    }
    const rates = {
      calls: mix(before?.calls, a(flow.calls)),
      decided: mix(before?.decided, a(decided)),
      attempts: mix(before?.attempts, a(flow.attempts ?? 0)),
      outcomes: mixAll(before?.outcomes, outcomes),
      refused: mixAll(before?.refused, refused),
      fallbacks: mixAll(before?.fallbacks, fallbacks),
    }
    this.#known.set(key, { rates, waiting })
  }
}

/** Joins two names to one key; the separator cannot occur in a name. */
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
