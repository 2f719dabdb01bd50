/** The outcome of each client's request, and figures computed from the outcomes. */

export type Outcome =
  /** Within the client's patience. */
  | 'answered'
  /** Refused immediately, because there is no free slot. */
  | 'refused'
  /** Got an error. */
  | 'failed'
  /** Left, or got a timeout after waiting. */
  | 'timed out'

export const OUTCOMES: readonly Outcome[] = ['answered', 'refused', 'failed', 'timed out']

/** One client. Times are milliseconds from the start of the act. */
export interface Visit {
  arrivedMs: number
  end: { atMs: number; outcome: Outcome } | undefined
}

export interface Span {
  startMs: number
  endMs: number
}

export function arrivedIn(visits: readonly Visit[], { startMs, endMs }: Span): Visit[] {
  return visits.filter(({ arrivedMs }) => arrivedMs >= startMs && arrivedMs < endMs)
}

export function countOf(visits: readonly Visit[], outcome: Outcome): number {
  return visits.filter(({ end }) => end?.outcome === outcome).length
}

export function partOf(visits: readonly Visit[], outcome: Outcome): number {
  return visits.length === 0 ? 0 : countOf(visits, outcome) / visits.length
}

/** Arrivals per second. */
export function offeredIn(visits: readonly Visit[], span: Span): number {
  return perSecond(arrivedIn(visits, span).length, span)
}

/** Answers within the client's patience, per second. */
export function goodputIn(visits: readonly Visit[], span: Span): number {
  const answers = visits.filter(
    ({ end }) => end?.outcome === 'answered' && end.atMs >= span.startMs && end.atMs < span.endMs,
  )
  return perSecond(answers.length, span)
}

/** This percentile of the durations of visits with this outcome. Undefined without such visits. */
export function percentile(
  visits: readonly Visit[],
  outcome: Outcome,
  fraction: number,
): number | undefined {
  const timesMs = visits.flatMap(({ arrivedMs, end }) =>
    end?.outcome === outcome ? [end.atMs - arrivedMs] : [],
  )
  timesMs.sort((one, other) => one - other)
  return timesMs[Math.ceil(timesMs.length * fraction) - 1]
}

function perSecond(count: number, { startMs, endMs }: Span): number {
  return (count * 1_000) / (endMs - startMs)
}
