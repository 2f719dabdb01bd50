/**
 * The lanes of one vendor: one per model, and per key if it has several. Callers choose model names, so the number of
 * lanes is bounded. A model that the configuration does not name, and that has no lane yet, is in one of two cases:
 *
 * - Its limits count per model: it has its lane from the first request on. Otherwise its first requests would be charged to
 *   another lane, and the whole limit would be free again with the first answer. These lanes are few: see
 *   `MOST_UNANSWERED`. Further models use `(other)`, or the lane `(other)` of their entry, until they are answered.
 * - It has no such limits: it uses the lane `(other)` until the vendor has answered a request for it successfully.
 */
import type { Clock } from 'spillway'
import {
  CachedPrefixes,
  LaneEstimates,
  NamePattern,
  overflowLane,
  Reservations,
} from 'spillway/internal'
import { duration } from 'spillway/options'
import type { ModelLimitsConfig, VendorConfig } from '../config/config.js'
import { maskedName } from '../response/privacy.js'

export const OTHER_LANE = '(other)'

/** Model and key, which the vendor counts separately. */
export interface LaneParts {
  readonly model: string | undefined
  /** Name of the key, if the vendor has several. */
  readonly key: string | undefined
}

/** Properties of a vendor's limits that lanes depend on. */
export interface LaneRules {
  /** The lane of models without a lane of their own. */
  otherLane(parts: LaneParts): string | undefined
  /** Limits count each model like this one separately. */
  hasOwnLimits(model: string | undefined): boolean
  /** The longest window of a limit. */
  readonly windowMs: number
}

const NO_LIMITS: LaneRules = {
  otherLane: ({ key }) => laneName({ model: OTHER_LANE, key }),
  hasOwnLimits: () => false,
  windowMs: 0,
}

/**
 * A model keeps its lane for at least this time after its last request. An answered model keeps it while its requests
 * may still count: in another lane the whole limit would be free again.
 */
const REST_MS = 60_000
/**
 * Some vendors answer for every name. Each new lane costs Redis a few commands, so there are this many new ones
 * at once and this many per second, answered or not. Other models stay in the lane `(other)`, or in that of their entry,
 * and get a lane after a later answer.
 */
const NEW_AT_ONCE = 20
const NEW_PER_SECOND = 5
/**
 * Lanes of models that were never answered. Their names may be made up, and each name has a key in Redis for as long as its
 * limits count. So there are this many at a time, and made-up names leave new lanes for models that are answered.
 */
const MOST_UNANSWERED = 20

interface KnownLane {
  readonly estimates: LaneEstimates
  usedMs: number
}

export class ModelLanes {
  #maxLanes: number
  #named: ReadonlySet<string>
  #rules = NO_LIMITS
  readonly #clock: Pick<Clock, 'now'>
  /** Named lanes and lanes of models, least recently used first. */
  readonly #known = new Map<string, KnownLane>()
  /** Those of them for which the vendor has not answered a request successfully. */
  readonly #unanswered = new Set<string>()
  readonly #prefixes: CachedPrefixes
  /** The lane at the end of `#known`. */
  #newest: string | undefined
  /** How many new lanes there may be, as of `#allowedMs`. */
  #allowed = NEW_AT_ONCE
  #allowedMs: number

  constructor(maxLanes: number, named: Iterable<string>, clock: Pick<Clock, 'now'>) {
    this.#maxLanes = maxLanes
    this.#named = new Set(named)
    this.#clock = clock
    this.#prefixes = new CachedPrefixes(clock)
    this.#allowedMs = clock.now()
  }

  /** For another configuration: models that were answered stay known. */
  configure(maxLanes: number, named: Iterable<string>, rules = NO_LIMITS): void {
    this.#maxLanes = maxLanes
    this.#named = new Set(named)
    this.#rules = rules
  }

  get size(): number {
    return this.#known.size
  }

  /** The lane of a request; undefined for a vendor with neither models nor several keys. */
  laneOf(parts: LaneParts): string | undefined {
    const lane = laneName(parts)
    if (lane === undefined || this.#exists(lane, parts)) return lane
    if (this.#rules.hasOwnLimits(parts.model) && this.#mayAddUnanswered(parts)) {
      this.#add(lane)
      this.#unanswered.add(lane)
      return lane
    }
    return this.#rules.otherLane(parts)
  }

  /** The lane that a request would use. Creates none. */
  nextLaneOf(parts: LaneParts): string | undefined {
    const lane = laneName(parts)
    const isOwn =
      lane === undefined ||
      this.#known.has(lane) ||
      this.#isNamed(lane, parts) ||
      this.#rules.hasOwnLimits(parts.model)
    return isOwn ? lane : this.#rules.otherLane(parts)
  }

  /** The vendor has answered a request successfully. The lane that requests like it use from now on. */
  answered(parts: LaneParts): string | undefined {
    const lane = laneName(parts)
    if (lane === undefined) return undefined
    if (!this.#exists(lane, parts) && this.#mayAdd(parts)) this.#add(lane)
    this.#unanswered.delete(lane)
    return this.laneOf(parts)
  }

  /** Estimates for requests of this lane. */
  estimatesOf(lane: string = OTHER_LANE): LaneEstimates {
    return this.#known.get(lane)?.estimates ?? new LaneEstimates(lane, this.#prefixes)
  }

  learn(lane: string = OTHER_LANE, ...answer: Parameters<LaneEstimates['learn']>): void {
    const known = this.#known.get(lane) ?? this.#add(lane)
    known.estimates.learn(...answer)
  }

  #exists(lane: string, parts: LaneParts): boolean {
    const known = this.#known.get(lane)
    if (known !== undefined) {
      known.usedMs = this.#clock.now()
      this.#moveToEnd(lane, known)
      return true
    }
    return this.#isNamed(lane, parts)
  }

  #isNamed(lane: string, { model }: LaneParts): boolean {
    // Keys are part of the configuration.
    return model === undefined || model === OTHER_LANE || this.#named.has(lane)
  }

  #mayAddUnanswered(parts: LaneParts): boolean {
    if (this.#unanswered.size >= MOST_UNANSWERED) {
      const nowMs = this.#clock.now()
      for (const lane of this.#unanswered) {
        const { usedMs } = this.#known.get(lane) as KnownLane
        if (nowMs - usedMs >= REST_MS) this.#forget(lane)
      }
    }
    return this.#unanswered.size < MOST_UNANSWERED && this.#mayAdd(parts)
  }

  /** Metrics show the names of lanes, so a key or a prompt sent as the model gets no lane. */
  #mayAdd({ model }: LaneParts): boolean {
    if (model !== undefined && maskedName(model) !== model) return false
    if (!this.#isNewAllowed()) return false
    if (this.#known.size >= this.#maxLanes && !this.#forgetRested()) return false
    this.#allowed--
    return true
  }

  #isNewAllowed(): boolean {
    const nowMs = this.#clock.now()
    const earned = ((nowMs - this.#allowedMs) / 1_000) * NEW_PER_SECOND
    this.#allowed = Math.min(NEW_AT_ONCE, this.#allowed + earned)
    this.#allowedMs = nowMs
    return this.#allowed >= 1
  }

  /** Until there are fewer than `maxLanes`; false if too many are in use. */
  #forgetRested(): boolean {
    const nowMs = this.#clock.now()
    const countsMs = Math.max(REST_MS, this.#rules.windowMs)
    for (const [lane, { usedMs }] of this.#known) {
      const restMs = nowMs - usedMs
      if (this.#known.size < this.#maxLanes || restMs < REST_MS) break
      const counts = restMs < countsMs && !this.#unanswered.has(lane)
      if (!counts && !this.#named.has(lane)) this.#forget(lane)
    }
    return this.#known.size < this.#maxLanes
  }

  #forget(lane: string): void {
    if (lane === this.#newest) this.#newest = undefined
    this.#known.delete(lane)
    this.#unanswered.delete(lane)
  }

  #add(lane: string): KnownLane {
    const estimates = new LaneEstimates(lane, this.#prefixes)
    const known = { estimates, usedMs: this.#clock.now() }
    this.#moveToEnd(lane, known)
    return known
  }

  #moveToEnd(lane: string, known: KnownLane): void {
    if (lane === this.#newest) return
    this.#known.delete(lane)
    this.#known.set(lane, known)
    this.#newest = lane
  }
}

export function laneName({ model, key }: LaneParts): string | undefined {
  if (model === undefined) return key
  return key === undefined ? model : `${model} (${key})`
}

/** Name of the key that a target uses, if the vendor has several. */
export function keyNameOf({ keys }: VendorConfig, key: string | undefined): string | undefined {
  return keys.length > 1 ? (key ?? keys[0]?.name) : undefined
}

type Limits = NonNullable<VendorConfig['guard']['limits']>
type Limited = Pick<VendorConfig, 'models' | 'pools' | 'guard'> &
  Partial<Pick<VendorConfig, 'quota'>>

interface Entry {
  readonly pattern: NamePattern
  readonly hasOwnLimits: boolean
  readonly reservations: Reservations
}

/** Models that are remembered: callers choose their names. */
const MOST_REMEMBERED = 2_000

/** Which limits hold for a model: those of the first entry of `models` that matches, or the vendor's own. */
export class ModelLimits implements LaneRules {
  readonly windowMs: number
  readonly #entries: readonly Entry[]
  readonly #rest: Pick<Entry, 'hasOwnLimits' | 'reservations'>
  readonly #units: ReadonlySet<string>
  readonly #byModel = new Map<string, Entry | undefined>()

  constructor({ models = [], pools = {}, guard: { limits = [] }, quota }: Limited) {
    const spanningAll = limits.filter(({ per }) => per === 'vendor')
    const limitsOf = ({ limits: own = [], pool }: ModelLimitsConfig): Limits => {
      const ofPool = pool === undefined ? [] : (pools[pool]?.limits ?? [])
      return [...ofPool, ...own, ...spanningAll]
    }
    const all = [limits, ...models.map(limitsOf)]
    this.windowMs = Math.max(0, ...all.flat().map(windowMsOf))
    this.#units = new Set(all.flat().map(({ unit = 'requests' }) => unit))
    this.#rest = {
      hasOwnLimits: spanningAll.length < limits.length,
      reservations: new Reservations(limits, quota),
    }
    this.#entries = models.map((each) => ({
      pattern: new NamePattern(each.match),
      hasOwnLimits: each.limits !== undefined,
      reservations: new Reservations(limitsOf(each), quota),
    }))
  }

  /** Some model has a limit on this unit. */
  counts(unit: string): boolean {
    return this.#units.has(unit)
  }

  /** What requests for this model reserve. */
  reservationsOf(model: string | undefined): Reservations {
    return (this.#entryOf(model) ?? this.#rest).reservations
  }

  hasOwnLimits(model: string | undefined): boolean {
    return (this.#entryOf(model) ?? this.#rest).hasOwnLimits
  }

  /** The lane of a model without a lane of its own. The limits of its entry hold there. */
  otherLane({ model, key }: LaneParts): string | undefined {
    const entry = this.#entryOf(model)
    if (entry === undefined) return laneName({ model: OTHER_LANE, key })
    return overflowLane(laneName({ model: entry.pattern.text, key }) as string)
  }

  #entryOf(model: string | undefined): Entry | undefined {
    if (this.#entries.length === 0 || model === undefined) return undefined
    if (this.#byModel.has(model)) return this.#byModel.get(model)
    const found = this.#entries.find(({ pattern }) => pattern.matches(model))
    if (this.#byModel.size >= MOST_REMEMBERED) this.#byModel.clear()
    this.#byModel.set(model, found)
    return found
  }
}

/** A day with a change of the clock has up to 25 hours. */
const LONGEST_DAY_MS = 25 * 3_600_000
const readWindow = duration({ min: 1 })

function windowMsOf({ windowMs }: Limits[number]): number {
  return windowMs === undefined ? LONGEST_DAY_MS : readWindow(windowMs, '', [])
}
