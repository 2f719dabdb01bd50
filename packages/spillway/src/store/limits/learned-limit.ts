/**
 * A limit that follows what the vendor really gives, if that is less than configured. A refusal (429) lowers it to
 * what the vendor accepted in the window; after some windows without refusals it is raised step by step, as far as
 * calls wait for it. The state is a part of the count, so all pods share it. Twin: `redis/lua/include/learned-limit.lua`.
 */
import { type LimitSpec, lowered } from '../limit-spec.js'
import { type Count, capacity, fits } from './counting.js'
import type { LearnedLimit } from './learned-state.js'

/** A call that the vendor refused. */
export interface RefusedUnits {
  /** When its permit was granted. */
  grantedUs: number
  cost: number
}

/** Two refusals at a similar use confirm each other if they are no further apart than this number of windows. */
const CONFIRMS_WINDOWS = 10
/** Without a raise or a refusal for this long, the configured limit is tried again. */
const KEPT_US = 3_600_000_000
/** Refusals arrive within this part of a window. */
const ANSWERED = 4
/** Headers of an answer describe the present only if it came within this part of a window. */
const FRESH = 10

/**
 * The limit in force, after a raise that is due. `setUs`: when an operator last set the limit for a while.
 * Returns `spec` itself if nothing was learned.
 */
export function learnedSpec(
  spec: LimitSpec,
  count: Count,
  { now, version, setUs }: { now: number; version: number; setUs: number },
): LimitSpec {
  const { learned } = count
  if (learned === undefined) return spec
  const isOutdated = version > learned.version || setUs > learned.loweredUs
  if (isOutdated || now - learned.steppedUs > KEPT_US) {
    count.learned = undefined
    return spec
  }
  if (isRaiseDue(learned, spec.windowUs, now)) {
    if (learned.steps > 0) learned.accepted = learned.limit
    learned.limit += stepOf(learned)
    learned.steps++
    learned.steppedUs = now
    learned.missing = 0
    learned.fullUs = 0
    if (learned.limit >= spec.limit) count.learned = undefined
  }
  return lowered(spec, learned.limit)
}

/** A small limit is raised in larger relative steps, so it is raised less often. */
function isRaiseDue(
  { limit, steps, steppedUs, missing, fullUs }: LearnedLimit,
  windowUs: number,
  now: number,
): boolean {
  // The vendor needs some time to refuse the calls that the limit allowed last.
  if (missing === 0 || (now - fullUs) * ANSWERED < windowUs) return false
  const windows = steps > 0 ? 1 : limit >= 10 ? 2 : limit >= 4 ? 4 : 6
  return now - steppedUs >= windows * windowUs
}

/**
 * One more call first, because it costs one refusal if the vendor gives no more. Larger steps follow a success, but
 * the limit that the vendor refused last is tried before a higher one.
 */
function stepOf({ limit, steps, missing, from }: LearnedLimit): number {
  if (steps === 0) return missing
  const part = steps === 1 ? Math.ceil(limit / 16) : steps === 2 ? Math.ceil(limit / 4) : limit
  const step = Math.max(missing, part)
  return from > limit ? Math.min(step, Math.max(missing, from - limit)) : step
}

/**
 * Notes that calls of this cost wait. Returns whether that is new and caused by this limit. Pods that share the limit
 * may leave a small part unused; of a bucket, also the units that refill before their next request.
 */
export function noteFull(spec: LimitSpec, count: Count, now: number, cost: number): boolean {
  const { learned } = count
  if (learned === undefined || learned.missing > 0 || cost === 0) return false
  const most = capacity(spec)
  const unused = Math.max(1, Math.floor(most / (spec.algorithm === 'sliding-window' ? 16 : 4)))
  if (fits(spec, count, now, Math.min(most, cost + unused))) return false
  learned.missing = cost
  learned.fullUs = now
  return true
}

/**
 * The vendor refused a call because of this limit. `spec`: in force. Returns the limit in force afterwards, or
 * undefined if nothing can be learned.
 */
export function learnFromRefusal(
  spec: LimitSpec,
  count: Count,
  { grantedUs, cost }: RefusedUnits,
  now: number,
  version: number,
): LimitSpec | undefined {
  const known = count.learned
  if (known !== undefined && grantedUs <= known.loweredUs) {
    // It was counted as accepted when the limit was lowered.
    const wasCounted = grantedUs > known.loweredUs - spec.windowUs && known.steps === 0
    if (wasCounted && spec.algorithm === 'sliding-window') {
      known.accepted = Math.max(1, known.accepted - cost)
      known.limit = Math.min(known.limit, leastOf(known))
    }
    return lowered(spec, known.limit)
  }
  // Without a count of the window, calls of one window are refused together.
  const isSliding = spec.algorithm === 'sliding-window'
  if (!isSliding && known?.steps === 0 && now - known.loweredUs < spec.windowUs) {
    return lowered(spec, known.limit)
  }
  const accepted = acceptedOf(spec, count)
  // A vendor that accepts nothing in a whole window refuses for another reason.
  if (accepted === 0) return undefined
  lowerTo(spec, count, accepted, now, version)
  return lowered(spec, (count.learned as LearnedLimit).limit)
}

/**
 * The vendor reports that `left` units are left: with those in use, that is its limit. `spec`: in force. Returns the
 * limit in force afterwards, or undefined if nothing can be learned.
 */
export function learnFromLeft(
  spec: LimitSpec,
  count: Count,
  left: number,
  at: { grantedUs: number; now: number; version: number },
): LimitSpec | undefined {
  const { grantedUs, now, version } = at
  if (spec.algorithm !== 'sliding-window' || (now - grantedUs) * FRESH > spec.windowUs)
    return undefined
  const given = count.units + left
  // Both sides count with some delay, so small differences mean nothing.
  if (given === 0 || given * 10 >= spec.limit * 9) return undefined
  lowerTo(spec, count, given, now, version)
  const learned = count.learned as LearnedLimit
  learned.limit = Math.min(learned.limit, given)
  return lowered(spec, learned.limit)
}

/** The units of the window, without refused ones. Only a sliding window counts them; others are lowered by 30 %. */
function acceptedOf(spec: LimitSpec, { learned, units }: Count): number {
  if (spec.algorithm === 'sliding-window') return Math.min(spec.limit, units)
  if (learned !== undefined && learned.steps > 0) return Math.min(spec.limit, learned.accepted)
  return Math.max(1, Math.floor((spec.limit * 7) / 10))
}

function lowerTo(
  spec: LimitSpec,
  count: Count,
  accepted: number,
  now: number,
  version: number,
): void {
  const known = count.learned
  const isRecent = known !== undefined && now - known.loweredUs <= CONFIRMS_WINDOWS * spec.windowUs
  const learned: LearnedLimit = {
    limit: spec.limit,
    accepted,
    before: isRecent ? known.accepted : 0,
    from: spec.limit,
    loweredUs: now,
    steppedUs: now,
    steps: 0,
    missing: 0,
    fullUs: 0,
    version,
  }
  learned.limit = Math.min(spec.limit, leastOf(learned))
  count.learned = learned
}

/** One refusal lowers a limit by half at most, and a second one at a similar use confirms it. */
function leastOf({ accepted, before, from }: LearnedLimit): number {
  const isConfirmed = accepted * 4 >= before * 3 && accepted * 4 <= before * 5
  return isConfirmed ? accepted : Math.max(accepted, Math.ceil(from / 2))
}

/** How long the state is kept. */
export function learnedLifeUs({ learned }: Count, now: number): number {
  return learned === undefined ? 0 : learned.steppedUs + KEPT_US - now
}

/** The clock was set back. */
export function rebaseLearned({ learned }: Count, backUs: number): void {
  if (learned === undefined) return
  learned.loweredUs -= backUs
  learned.steppedUs -= backUs
  learned.fullUs -= backUs
}
