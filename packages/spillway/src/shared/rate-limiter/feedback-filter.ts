/**
 * The recent feedback of a vendor about its limits, by lane: which responses are worth reading, and which part of
 * them is new. Most responses repeat what is known.
 */
import { LaneMap, type LaneRegistry } from '../lanes/lane-registry.js'
import type { UnitLimit } from './options.js'
import type { VendorHeaders } from './vendor-headers.js'

/** Remaining units of a limit, which is given by its index. */
export interface VendorLeft {
  limit: number
  remaining: number
  resetUs: number
}

export interface FeedbackReport {
  readonly throttled: boolean
  readonly left: readonly VendorLeft[]
}

interface Lane {
  /** When a response was last read. */
  usedMs: number
  /** Start of the interval in which `answers` responses arrived. */
  sinceMs: number
  answers: number
  /** When the remaining units were last passed on, and how many those were, by index of the limit. */
  reportedMs: number
  remaining: readonly number[]
  /** The last response asked to slow down. */
  throttled: boolean
}

/** At most this many good responses are read per interval. */
const INTERVAL_MS = 10
const READ_PER_INTERVAL = 5
/** How often remaining units are passed on, and below which fraction of a limit they are scarce. */
const REPORT_EVERY_MS = 100
const SCARCE = 0.1
/** After this time without a response a lane is forgotten. */
const FORGET_MS = 60_000

export class FeedbackFilter {
  readonly #lanes: LaneMap<Lane>

  constructor(lanes: LaneRegistry) {
    this.#lanes = new LaneMap(lanes, { create: () => newLane() })
  }

  /** Number of remembered lanes. */
  get size(): number {
    return this.#lanes.size
  }

  /** Enough good responses of this interval were read. */
  readEnough(lane: string, nowMs: number): boolean {
    const known = this.#lanes.get(lane)
    if (known === undefined || known.throttled) return false
    if (nowMs - known.sinceMs >= INTERVAL_MS) {
      known.sinceMs = nowMs
      known.answers = 0
    }
    known.answers++
    return known.answers > READ_PER_INTERVAL
  }

  /** The part of a response that is worth passing on, if any. */
  read(
    lane: string,
    { headers, good, throttled }: { headers: VendorHeaders; good: boolean; throttled: boolean },
    limits: readonly UnitLimit[],
    nowMs: number,
  ): FeedbackReport | undefined {
    const known = this.#laneOf(lane, nowMs)
    known.usedMs = nowMs
    // A vendor that sends no limit headers in one response sends none in the next either.
    if (good && headers.left.length === 0)
      known.answers = Math.max(known.answers, READ_PER_INTERVAL)
    // A response without feedback is reported only after one that asked to slow down.
    const recovered = known.throttled && !throttled
    known.throttled = throttled
    const left = worthPassingOn(known, headers, limits, nowMs)
    return throttled || recovered || left.length > 0 ? { throttled, left } : undefined
  }

  /** Forgets unused lanes. */
  sweep(nowMs: number): void {
    for (const [lane, { usedMs }] of this.#lanes) {
      if (nowMs - usedMs > FORGET_MS) this.#lanes.drop(lane)
    }
  }

  close(): void {
    this.#lanes.close()
  }

  #laneOf(lane: string, nowMs: number): Lane {
    const known = this.#lanes.of(lane)
    if (known.answers === 0) {
      known.sinceMs = nowMs
      known.answers = 1
    }
    return known
  }
}

function newLane(): Lane {
  const reportedMs = Number.NEGATIVE_INFINITY
  return { usedMs: 0, sinceMs: 0, answers: 0, reportedMs, remaining: [], throttled: false }
}

/**
 * Remaining units arrive with every response and are mostly known. They are passed on every 100 ms, and at once if
 * they are scarce or dropped by a tenth.
 */
function worthPassingOn(
  lane: Lane,
  { left }: VendorHeaders,
  limits: readonly UnitLimit[],
  nowMs: number,
): readonly VendorLeft[] {
  if (left.length === 0) return NOTHING
  const known: VendorLeft[] = []
  let isDue = nowMs - lane.reportedMs >= REPORT_EVERY_MS
  for (const { unit, remaining, resetMs } of left) {
    // The remaining units in headers are those of short windows, not of the day.
    const limit = limits.findIndex(({ unit: own, spec }) => own === unit && spec.day === undefined)
    if (limit === -1) continue
    known.push({ limit, remaining, resetUs: Math.ceil(resetMs * 1_000) })
    const scarce = remaining <= (limits[limit] as UnitLimit).spec.limit * SCARCE
    isDue ||= scarce || remaining < (lane.remaining[limit] ?? 0) * (1 - SCARCE)
  }
  if (!isDue || known.length === 0) return NOTHING
  const remaining: number[] = []
  for (const each of known) remaining[each.limit] = each.remaining
  lane.reportedMs = nowMs
  lane.remaining = remaining
  return known
}

const NOTHING: readonly VendorLeft[] = []
