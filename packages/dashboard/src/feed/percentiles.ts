/**
 * Percentiles of the last ten seconds, estimated from histogram buckets, with values spread evenly
 * within a bucket.
 */
import { type Durations, SECONDS } from 'spillway/internal'
import { rounded } from '../shown.js'
import type { Percentiles } from '../wire/guards.js'

const SAMPLES = 10

export class RecentPercentiles {
  readonly #before: number[][] = []

  /** Called once a second with counts since the beginning; several histograms are added up. */
  sample(all: readonly Pick<Durations, 'counts'>[]): Percentiles | undefined {
    const now = SECONDS.map((_, bucket) => sumOf(all, bucket))
    now.push(sumOf(all, SECONDS.length))
    const oldest = this.#before.length >= SAMPLES ? this.#before.shift() : this.#before[0]
    this.#before.push(now)
    const counts = now.map((count, bucket) => count - (oldest?.[bucket] ?? 0))
    const count = counts.reduce((sum, each) => sum + each, 0)
    if (count === 0) return undefined
    const at = (share: number) => rounded(percentile(counts, count * share) * 1_000)
    return { count, p50Ms: at(0.5), p90Ms: at(0.9), p99Ms: at(0.99) }
  }
}

function sumOf(all: readonly Pick<Durations, 'counts'>[], bucket: number): number {
  return all.reduce((sum, { counts }) => sum + (counts[bucket] ?? 0), 0)
}

function percentile(counts: readonly number[], rank: number): number {
  let below = 0
  for (const [bucket, count] of counts.entries()) {
    if (count > 0 && below + count >= rank) {
      const from = SECONDS[bucket - 1] ?? 0
      const to = SECONDS[bucket] ?? from
      return from + ((to - from) * (rank - below)) / count
    }
    below += count
  }
  return SECONDS.at(-1) ?? 0
}
