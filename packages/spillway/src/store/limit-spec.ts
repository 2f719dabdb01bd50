/** A limit as stores see it: numbers only, times in microseconds. */
export interface LimitSpec {
  /** Unique among the limits of a guard. Counts are kept under it when the settings change. */
  id: string
  algorithm: 'sliding-window' | 'token-bucket' | 'leaky-bucket' | 'fixed-window'
  limit: number
  windowUs: number
  /** Sliding window: number of slices. */
  slices: number
  /** Token bucket: units that may be taken at once; 0 means `limit`. */
  burst: number
  /** One count for each lane, one for the lanes of a pool (`LaneRef.pool`), or one for all lanes of the guard. */
  span: 'lane' | 'pool' | 'vendor'
  /** Fixed window of `DAY_US`: counts calendar days of a time zone. Default: windows since 1970 in UTC. */
  day?: CalendarDay
  /** Follows what the vendor gives, if that is less. Default: false. */
  learn?: boolean
}

/** The days of a time zone. */
export interface CalendarDay {
  /** The offset from UTC, then each change of the clock: its time, and the offset from then on. */
  offsets: readonly number[]
  /** Nothing is granted in this time before midnight. */
  quietUs: number
}

/** The same limit with fewer units. */
export function lowered(spec: LimitSpec, limit: number): LimitSpec {
  if (limit >= spec.limit) return spec
  const burst = Math.max(1, Math.floor((spec.burst * limit) / spec.limit))
  return { ...spec, limit, burst: spec.burst === 0 ? 0 : burst }
}
