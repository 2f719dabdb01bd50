/**
 * The lanes of one vendor: one per model, and per key if it has several. Callers choose model names, so a model
 * that the configuration does not name uses the lane `(other)` until the vendor has answered a request for it
 * successfully. Made-up names therefore create no state, here or in the guard. Models that an entry of `models` matches
 * share the lane `(other)` of that entry, because its limits hold for them.
 */
import type { Clock } from 'spillway'
import {
  CachedPrefixes,
  LaneEstimates,
  NamePattern,
  overflowLane,
  Reservations,
} from 'spillway/internal'
import type { ModelLimitsConfig, VendorConfig } from '../config/config.js'
import { maskedName } from '../response/privacy.js'

export const OTHER_LANE = '(other)'

/** What the vendor counts separately. */
export interface LaneParts {
  readonly model: string | undefined
  /** Name of the key, if the vendor has several. */
  readonly key: string | undefined
}

/** The lane of models without a lane of their own. */
type OtherLane = (parts: LaneParts) => string | undefined

const usualOther: OtherLane = ({ key }) => laneName({ model: OTHER_LANE, key })

/** An answered model keeps its lane for at least this time after its last request. */
const REST_MS = 60_000
/**
 * Some vendors answer for every name. Each new lane costs Redis a few commands, so there are this many new ones
 * at once and this many per second. Other models stay in `(other)` and get a lane after a later answer.
 */
const NEW_AT_ONCE = 20
const NEW_PER_SECOND = 5

interface KnownLane {
  readonly estimates: LaneEstimates
  usedMs: number
}

export class ModelLanes {
  #maxLanes: number
  #named: ReadonlySet<string>
  #otherLane: OtherLane = usualOther
  readonly #clock: Pick<Clock, 'now'>
  /** Named lanes and lanes of answered models, least recently used first. */
  readonly #known = new Map<string, KnownLane>()
  readonly #prefixes: CachedPrefixes
  /** The last one of them. */
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
  configure(maxLanes: number, named: Iterable<string>, otherLane = usualOther): void {
    this.#maxLanes = maxLanes
    this.#named = new Set(named)
    this.#otherLane = otherLane
  }

  get size(): number {
    return this.#known.size
  }

  /** The lane of a request; undefined for a vendor with neither models nor several keys. */
  laneOf(parts: LaneParts): string | undefined {
    const lane = laneName(parts)
    if (lane === undefined || this.#exists(lane, parts)) return lane
    return this.#otherLane(parts)
  }

  /** The vendor has answered a request successfully. The lane that requests like it use from now on. */
  answered(parts: LaneParts): string | undefined {
    const lane = laneName(parts)
    if (lane === undefined) return undefined
    if (!this.#exists(lane, parts) && this.#mayAdd(parts)) this.#add(lane)
    return this.laneOf(parts)
  }

  /** What requests of this lane are expected to need. */
  estimatesOf(lane: string = OTHER_LANE): LaneEstimates {
    return this.#known.get(lane)?.estimates ?? new LaneEstimates(lane, this.#prefixes)
  }

  learn(lane: string = OTHER_LANE, ...answer: Parameters<LaneEstimates['learn']>): void {
    const known = this.#known.get(lane) ?? this.#add(lane)
    known.estimates.learn(...answer)
  }

  #exists(lane: string, { model }: LaneParts): boolean {
    const known = this.#known.get(lane)
    if (known !== undefined) {
      known.usedMs = this.#clock.now()
      this.#moveToEnd(lane, known)
      return true
    }
    // Keys are part of the configuration.
    return model === undefined || model === OTHER_LANE || this.#named.has(lane)
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

  #forgetRested(): boolean {
    const oldestMs = this.#clock.now() - REST_MS
    for (const [lane, { usedMs }] of this.#known) {
      if (usedMs > oldestMs) return false
      if (this.#named.has(lane)) continue
      if (lane === this.#newest) this.#newest = undefined
      return this.#known.delete(lane)
    }
    return false
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
  readonly reservations: Reservations
}

/** Models that are remembered: callers choose their names. */
const MOST_REMEMBERED = 2_000

/** Which limits hold for a model: those of the first entry of `models` that matches, or the vendor's own. */
export class ModelLimits {
  readonly #entries: readonly Entry[]
  readonly #rest: Reservations
  readonly #units: ReadonlySet<string>
  readonly #byModel = new Map<string, Entry | undefined>()

  constructor({ models = [], pools = {}, guard: { limits = [] }, quota }: Limited) {
    const spanningAll = limits.filter(({ per }) => per === 'vendor')
    const limitsOf = ({ limits: own = [], pool }: ModelLimitsConfig): Limits => {
      const ofPool = pool === undefined ? [] : (pools[pool]?.limits ?? [])
      return [...ofPool, ...own, ...spanningAll]
    }
    const all = [limits, ...models.map(limitsOf)]
    this.#units = new Set(all.flat().map(({ unit = 'requests' }) => unit))
    this.#rest = new Reservations(limits, quota)
    this.#entries = models.map((each) => ({
      pattern: new NamePattern(each.match),
      reservations: new Reservations(limitsOf(each), quota),
    }))
  }

  /** Some model has a limit on this unit. */
  counts(unit: string): boolean {
    return this.#units.has(unit)
  }

  /** What requests for this model reserve. */
  reservationsOf(model: string | undefined): Reservations {
    return this.#entryOf(model)?.reservations ?? this.#rest
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
