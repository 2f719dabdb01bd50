/**
 * What vendors said lately about their limits, lane by lane: which answers are worth reading, and what of them
 * is news. Answers by the thousand say nearly the same.
 */
import { LaneMap } from '../lanes/lane-map.js'
import type { LaneRegistry } from '../lanes/lane-registry.js'
import type { UnitLimit } from './options.js'
import type { VendorWord } from './vendor-headers.js'

/** Which limit, by its number, and what is left of it. */
export interface VendorLeft {
  limit: number
  remaining: number
  resetUs: number
}

export interface News {
  readonly throttled: boolean
  readonly left: readonly VendorLeft[]
}

interface Lane {
  /** When it was last heard of. */
  usedMs: number
  /** When the moment began in which these answers came. */
  sinceMs: number
  answers: number
  /** When it was last passed on what is left, and how much that was, by the number of the limit. */
  toldMs: number
  remaining: readonly number[]
  /** Its last word was to slow down. */
  throttled: boolean
}

/** So many answers are read in every moment. */
const MOMENT_MS = 10
const READ_IN_A_MOMENT = 5
/** How often a vendor's word on what is left is passed on, and which part of a limit is little. */
const TELL_EVERY_MS = 100
const SCARCE = 0.1
/** A lane that nothing was heard of for so long says nothing about the next answer. */
const FORGET_MS = 60_000

export class VendorWords {
  readonly #lanes: LaneMap<Lane>

  constructor(lanes: LaneRegistry) {
    this.#lanes = new LaneMap(lanes, { create: () => newLane() })
  }

  /** How many lanes are remembered. */
  get size(): number {
    return this.#lanes.size
  }

  /** A good answer need not be read: enough of this moment were. */
  heardEnough(lane: string, nowMs: number): boolean {
    const known = this.#lanes.get(lane)
    if (known === undefined || known.throttled) return false
    if (nowMs - known.sinceMs >= MOMENT_MS) {
      known.sinceMs = nowMs
      known.answers = 0
    }
    known.answers++
    return known.answers > READ_IN_A_MOMENT
  }

  /** What of an answer that was read is worth telling, if anything is. */
  hear(
    lane: string,
    { word, good, throttled }: { word: VendorWord; good: boolean; throttled: boolean },
    limits: readonly UnitLimit[],
    nowMs: number,
  ): News | undefined {
    const known = this.#laneOf(lane, nowMs)
    known.usedMs = nowMs
    // Who says nothing about its limits in one answer says nothing in those beside it.
    if (good && word.left.length === 0) known.answers = Math.max(known.answers, READ_IN_A_MOMENT)
    // An answer that says nothing is news only after one that told us to slow down.
    const recovered = known.throttled && !throttled
    known.throttled = throttled
    const left = worthTelling(known, word, limits, nowMs)
    return throttled || recovered || left.length > 0 ? { throttled, left } : undefined
  }

  /** Lets go of lanes that nobody uses any more. */
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
  const toldMs = Number.NEGATIVE_INFINITY
  return { usedMs: 0, sinceMs: 0, answers: 0, toldMs, remaining: [], throttled: false }
}

/**
 * What is left comes with every answer, and nearly always it is what we know. So it is told now and then, and at
 * once where little is left or much is gone; the next answer has a newer word.
 */
function worthTelling(
  told: Lane,
  { left }: VendorWord,
  limits: readonly UnitLimit[],
  nowMs: number,
): readonly VendorLeft[] {
  if (left.length === 0) return NOTHING
  const known: VendorLeft[] = []
  let news = nowMs - told.toldMs >= TELL_EVERY_MS
  for (const { unit, remaining, resetMs } of left) {
    const limit = limits.findIndex((each) => each.unit === unit)
    if (limit === -1) continue
    known.push({ limit, remaining, resetUs: Math.ceil(resetMs * 1_000) })
    const scarce = remaining <= (limits[limit] as UnitLimit).spec.limit * SCARCE
    news ||= scarce || remaining < (told.remaining[limit] ?? 0) * (1 - SCARCE)
  }
  if (!news || known.length === 0) return NOTHING
  const remaining: number[] = []
  for (const each of known) remaining[each.limit] = each.remaining
  told.toldMs = nowMs
  told.remaining = remaining
  return known
}

const NOTHING: readonly VendorLeft[] = []
