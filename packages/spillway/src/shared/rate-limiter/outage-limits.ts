/**
 * A guard's limits while the store is unreachable: this pod decides by the outage rule of each limit. While the store
 * is reachable, this records the data needed for an outage.
 */
import { refusedByOutageRule, type SpillwayError } from '../../core/errors.js'
import { type Fleet, shareOf } from '../../store/fleet-share.js'
import { type LimitSpec, lowered } from '../../store/limit-spec.js'
import {
  type KnownLanes,
  type LimitRule,
  LocalSpend,
  type SpendingLane,
  type Unreported,
} from '../../store/local-spend.js'
import type { LaneFigures, Spent, TakeReply } from '../../store/port.js'
import type { LaneHolder, LaneRegistry } from '../lanes/lane-registry.js'
import type { OutageRule } from '../outage/rules.js'
import type { StoreWatch } from '../outage/store-watch.js'
import type { Correction } from './permit.js'

/** At most this many lanes are read with every heartbeat, because each takes a command. */
const MOST_READ = 64

interface UnsentReport extends Unreported {
  sequence: number
}

interface Pause {
  untilUs: number
  /** How often in a row the vendor asked for a pause without a duration. */
  grown: number
}

export class OutageLimits implements LaneHolder {
  readonly #watch: StoreWatch
  readonly #name: string
  #rules: ReadonlyMap<string, OutageRule> = new Map()
  readonly #own = new LocalSpend()
  readonly #pauses = new Map<string, Pause>()
  /** By pool; lanes in a pool share the pool's pause. */
  readonly #poolPauses = new Map<string, Pause>()
  /** By lane and id: limits of which the vendor gives less. */
  readonly #learned = new Map<string, ReadonlyMap<string, number>>()
  /** When each lane was last used, in the store's time. */
  readonly #used = new Map<string, number>()
  /** Reports that the store has not confirmed. */
  readonly #unsent: UnsentReport[] = []
  #sequence = 0
  #busy = false
  /** Reduced limits, for this fleet. */
  #reduced: { fleet: Fleet; missing: number } | undefined
  #reducedSpecs = new WeakMap<readonly LimitSpec[], LimitSpec[]>()

  constructor(name: string, watch: StoreWatch, lanes: LaneRegistry) {
    this.#name = name
    this.#watch = watch
    lanes.attach(this)
  }

  /** False while the lane is paused, or has spent units that the store does not know. */
  isIdle(lane: string): boolean {
    if ((this.#pauses.get(lane)?.untilUs ?? 0) > this.#watch.nowUs()) return false
    return this.#own.isReported(lane)
  }

  drop(lane: string): void {
    this.#own.drop(lane)
    this.#used.delete(lane)
    this.#pauses.delete(lane)
    this.#learned.delete(lane)
  }

  /** Outage rules, by id of the limit. */
  setRules(rules: ReadonlyMap<string, OutageRule>): void {
    this.#rules = rules
  }

  /** The limits to request under: shares of pods that may be spending on their own are left out. */
  specsToRequest(specs: readonly LimitSpec[]): readonly LimitSpec[] {
    const { missing, fleet } = this.#watch
    if (missing === 0) return specs
    if (this.#reduced?.fleet !== fleet || this.#reduced.missing !== missing) {
      this.#reduced = { fleet, missing }
      this.#reducedSpecs = new WeakMap()
    }
    const known = this.#reducedSpecs.get(specs)
    if (known !== undefined) return known
    const reduced = specs.map((spec) => this.#without(spec, missing, fleet))
    this.#reducedSpecs.set(specs, reduced)
    return reduced
  }

  #without(spec: LimitSpec, missing: number, { pods }: Fleet): LimitSpec {
    if (this.#ruleOf(spec) !== 'share') return spec
    const withoutMissing = (units: number) => Math.max(1, units - missing * Math.ceil(units / pods))
    return {
      ...spec,
      limit: withoutMissing(spec.limit),
      burst: spec.burst === 0 ? 0 : withoutMissing(spec.burst),
    }
  }

  /** The store has replied to a permit request. */
  replied(lane: SpendingLane, costs: readonly (readonly number[])[], reply: TakeReply): void {
    const { granted, waitUs, paused, nowUs, capacities } = reply
    this.#use(lane.lane, nowUs)
    const sums = lane.limits.map(() => 0)
    for (let call = 0; call < granted; call++) {
      for (let index = 0; index < sums.length; index++) {
        sums[index]! += Math.min(costs[call]![index] as number, capacities[index] as number)
      }
    }
    this.#own.granted(lane, sums, { nowUs, fleet: this.#watch.fleet })
    if (paused) this.#setPause(lane, { untilUs: nowUs + waitUs, grown: 0 })
    const first = costs[granted]
    if (waitUs > 0 && !paused && first !== undefined) {
      this.#own.refused(lane, first, nowUs)
    }
  }

  noteFigures(lane: SpendingLane, figures: LaneFigures): void {
    const { limits, nowUs, pausedUntilUs } = figures
    const learned = limits.filter(({ limit, configured }) => limit < configured)
    if (learned.length === 0) this.#learned.delete(lane.lane)
    else this.#learned.set(lane.lane, new Map(learned.map(({ id, limit }) => [id, limit])))
    const left = limits.map(({ remaining }) => remaining)
    this.#own.noteFigures(lane, left, nowUs)
    const known = this.#pauseOf(lane)
    if (pausedUntilUs > (known?.untilUs ?? nowUs)) {
      this.#setPause(lane, { untilUs: pausedUntilUs, grown: known?.grown ?? 0 })
    }
  }

  /** The smallest remaining fraction of any limit; 1 if nothing is known. */
  headroom(lane: SpendingLane): number {
    const nowUs = this.#watch.nowUs()
    if ((this.#pauseOf(lane)?.untilUs ?? 0) > nowUs) return 0
    let least = 1
    for (const spec of lane.limits) {
      least = Math.min(least, this.#own.headroom(lane, spec, nowUs) ?? 1)
    }
    return least
  }

  /** Recently used lanes. */
  lanes(windowUs: number): string[] {
    const oldestUs = this.#watch.nowUs() - windowUs
    for (const [lane, usedUs] of this.#used) if (usedUs < oldestUs) this.#used.delete(lane)
    return [...this.#used.keys()].slice(-MOST_READ)
  }

  take(at: SpendingLane, costs: readonly (readonly number[])[]): TakeReply {
    const nowUs = this.#watch.nowUs()
    const rules = at.limits.map((spec) => this.#ruleOf(spec))
    const refusing = rules.indexOf('refuse')
    if (refusing >= 0) throw this.#unavailable(at, at.limits[refusing] as LimitSpec)
    this.#use(at.lane, nowUs)
    const pausedUs = (this.#pauseOf(at)?.untilUs ?? 0) - nowUs
    const request = {
      at: this.#withLearnedLimits(at),
      rules: rules as LimitRule[],
      fleet: this.#watch.fleet,
      nowUs,
    }
    const reply = this.#own.take({ ...request, costs: pausedUs > 0 ? [] : costs })
    if (pausedUs <= 0) return { ...reply, paused: false, nowUs }
    return { ...reply, waitUs: pausedUs, paused: true, nowUs }
  }

  /** The vendor asked for a pause. Returns its end, as the store would. */
  pause(lane: SpendingLane, pauseUs: number | undefined, baseUs: number, maxUs: number): number {
    const nowUs = this.#watch.nowUs()
    const known = this.#pauseOf(lane)
    const running = (known?.untilUs ?? 0) > nowUs
    const grown = known?.grown ?? 0
    const ownUs = running ? 0 : baseUs * 2 ** Math.min(grown, 20)
    const untilUs = Math.max(known?.untilUs ?? 0, nowUs + Math.min(pauseUs ?? ownUs, maxUs))
    const grows = pauseUs === undefined && !running
    this.#setPause(lane, { untilUs, grown: grows ? grown + 1 : grown })
    return untilUs
  }

  correct(lane: SpendingLane, corrections: readonly Correction[], reported: boolean): void {
    const at = { nowUs: this.#watch.nowUs(), fleet: this.#watch.fleet, reported }
    for (const each of corrections) {
      const spec = lane.limits.find(({ id }) => id === each.id)
      if (spec !== undefined) this.#own.correct(lane, spec, each, at)
    }
  }

  forgotten(): void {
    this.#unsent.length = 0
    this.#own.forgotten()
  }

  /**
   * Reports units that the store does not know, lane by lane and in order. A failed report is resent under the
   * same number, which the store remembers.
   */
  async report(
    known: KnownLanes,
    send: (at: SpendingLane, spent: readonly Spent[], sequence: number) => unknown,
  ): Promise<void> {
    for (const each of this.#own.takeUnreported(known, this.#watch.nowUs())) {
      this.#unsent.push({ ...each, sequence: ++this.#sequence })
    }
    if (this.#busy) return
    this.#busy = true
    try {
      for (let next = this.#unsent[0]; next !== undefined; next = this.#unsent[0]) {
        const { lane, pool = '' } = next.at
        const now = next.ofPool ? known.poolRef(pool) : known.ref(lane)
        if (now !== undefined) await send(now, spentUnder(now.limits, next), next.sequence)
        if (this.#unsent[0] === next) this.#unsent.shift()
      }
    } finally {
      this.#busy = false
    }
  }

  sweep(known: KnownLanes): void {
    const nowUs = this.#watch.nowUs()
    this.#own.sweep(known, { nowUs, fleet: this.#watch.fleet })
    for (const pauses of [this.#pauses, this.#poolPauses]) {
      for (const [name, { untilUs }] of pauses) if (untilUs <= nowUs) pauses.delete(name)
    }
  }

  /** This pod's share of each limit, for display. */
  shares(specs: readonly LimitSpec[]): Record<string, number> {
    return Object.fromEntries(specs.map(({ id, limit }) => [id, shareOf(limit, this.#watch.fleet)]))
  }

  /** The limits, lowered to those that the vendor grants, as far as they were learned. */
  #withLearnedLimits(at: SpendingLane): SpendingLane {
    const learned = this.#learned.get(at.lane)
    if (learned === undefined) return at
    const limits = at.limits.map((spec) => lowered(spec, learned.get(spec.id) ?? spec.limit))
    return { ...at, limits }
  }

  /** The most recently used lane comes last. */
  #use(lane: string, nowUs: number): void {
    this.#used.delete(lane)
    this.#used.set(lane, nowUs)
  }

  #pauseOf({ lane, pool }: SpendingLane): Pause | undefined {
    return pool === undefined ? this.#pauses.get(lane) : this.#poolPauses.get(pool)
  }

  #setPause({ lane, pool }: SpendingLane, pause: Pause): void {
    if (pool === undefined) this.#pauses.set(lane, pause)
    else this.#poolPauses.set(pool, pause)
  }

  #ruleOf({ id }: LimitSpec): OutageRule {
    return this.#rules.get(id) ?? 'share'
  }

  #unavailable({ lane }: SpendingLane, { id, limit }: LimitSpec): SpillwayError {
    const details = { lane, unit: unitOf(id), limit }
    const { problem } = this.#watch
    return refusedByOutageRule('vendor-limit', this.#name, problem, 'limits[].outage', details)
  }
}

/** The unit of a limit, without the rest of its id: `tokens` of `tokens@pool#2`. */
function unitOf(id: string): string {
  return id.replace(/[:@#/].*$/, '')
}

/** Limits may have changed since the report was made. */
function spentUnder(specs: readonly LimitSpec[], { at, spent }: UnsentReport): readonly Spent[] {
  const { limits: under } = at
  if (specs === under) return spent
  return spent.flatMap((each) => {
    const limit = specs.findIndex(({ id }) => id === under[each.limit]?.id)
    return limit === -1 ? [] : [{ ...each, limit }]
  })
}
