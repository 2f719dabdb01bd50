/**
 * Pods whose request was refused and whose calls wait, in order. With it
 * - a pod sleeps until half the needs of the pods before it are covered, too: not all of them wake at once, but
 *   if one of them is late, another one can use its units;
 * - pods get equal shares, whichever asks first and however often. The list counts the units that each pod was granted
 *   while others claimed a part. Free units are divided so that these sums become equal;
 * - a call that needs more than is usually free does not wait for ever. While its pod sleeps, it claims up to the cost
 *   of the call. The claim begins before the pod's time, by the time that the limit takes to refill that cost;
 * - capacity that becomes free early wakes the pod that has waited longest, by a message.
 * Twin: `redis/lua/include/waiting-pods.lua`; the turns are in `include/take-permits.lua`.
 */
import type { LimitSpec } from '../limit-spec.js'
import { type Count, capacity, fits, unitsToUs, waitUs } from './counting.js'
import { type Claim, claimedBefore, shareOf } from './equal-shares.js'

export interface WaitingPod {
  pod: string
  lane: string
  /** When it asks again: the time in its reply, or that of a message. */
  wakeUs: number
  /** The cost of its first waiting call, by id of the limit. */
  need: Record<string, number>
  /** False: all its requests were granted, or its calls do not wait. It stays in the list because of `got`. */
  waits: boolean
  /**
   * Units granted while others claimed a part, in 1/`WHOLE` of a limit, compared with the pod that was granted least.
   */
  got: number
}

export interface WaitingList {
  waiting: WaitingPod[]
  /** Messages are limited: the next one counts from here. */
  nextMessageUs: number
}

/** The pod that asks, and how long its calls could wait; 0: they do not wait. */
export interface Waiter {
  pod: string
  forUs: number
}

/** Wakes a pod, so that it asks for permits of a lane. */
export interface WakeMessage {
  pod: string
  lane: string
}

interface CountedLimit {
  spec: LimitSpec
  count: Count
}

/** Parts of a limit are counted in whole numbers; this is all of it. */
const WHOLE = 1_000_000_000
/** A pod is dropped if it sends no request for this long after its wake time. */
const GRACE_US = 1_000_000
/** How long after its wake time a pod keeps its claim to a share of free units: a loaded pod may be late. */
const CLAIM_US = 250_000
/** How long after its wake time the cost of a pod's first waiting call is reserved. */
const RESERVED_US = 40_000
/** A pod that got its share, or found the rest reserved, retries after this time. */
export const SHARE_RETRY_US = 50_000
/** Further pods are not in the list; they retry when their own wait is over. */
const MAX_WAITING = 256
/** At most 20 messages in any second: ten at once, and ten per second after that. */
const MESSAGE_US = 100_000
const MESSAGE_BURST_US = 900_000
/** Time for a pod that was woken to ask, before the next one is woken. */
const WAKE_AGAIN_US = 50_000

export function noneWaiting(): WaitingList {
  return { waiting: [], nextMessageUs: 0 }
}

export function waitingLifeUs({ waiting }: WaitingList, now: number): number {
  let life = 0
  for (const { wakeUs } of waiting) life = Math.max(life, wakeUs + GRACE_US - now)
  return life
}

/** The request of one pod in relation to the waiting ones. */
export class WaitingTurn {
  readonly #list: WaitingList
  readonly #now: number
  readonly #entries: readonly CountedLimit[]
  readonly #lane: string
  readonly #waiter: Waiter | undefined
  /** The position of this pod; -1 if it is not in the list. */
  readonly #own: number
  /** Other pods whose claim has begun. */
  readonly #rivals: readonly WaitingPod[]
  /** The claims of those that wait and are not too late. */
  readonly #claims: readonly Claim[]
  /** As `WaitingPod.got`, with what this request was granted. */
  #got: number
  /** The list has to be saved. */
  changed = false

  constructor(
    list: WaitingList,
    entries: readonly CountedLimit[],
    now: number,
    lane: string,
    waiter: Waiter | undefined,
  ) {
    this.#list = list
    this.#entries = entries
    this.#now = now
    this.#lane = lane
    this.#waiter = waiter
    forgetLate(list, now)
    this.#own =
      waiter === undefined
        ? -1
        : list.waiting.findIndex((each) => each.pod === waiter.pod && each.lane === lane)
    this.#got = list.waiting[this.#own]?.got ?? 0
    this.#rivals = list.waiting.filter(
      (each, index) => index !== this.#own && each.wakeUs - now <= claimsBeforeUs(entries, each),
    )
    this.#claims = this.#rivals
      .filter(({ waits, wakeUs }) => waits && now < wakeUs + CLAIM_US)
      .map(({ wakeUs, need, got }) => {
        const isDue = wakeUs <= now + SHARE_RETRY_US
        return { got, most: isDue ? undefined : mostWhileAsleep(entries, need) }
      })
  }

  /** Whether other pods claim a part of the free units. */
  get isShared(): boolean {
    return this.#claims.length > 0
  }

  /** No other pod that claims a part was granted less. */
  get hadLeast(): boolean {
    return this.#claims.every(({ got }) => got >= this.#got)
  }

  /** The part of a limit that this pod may get of the free units. */
  partOf(limit: number, free: number): number {
    const { spec } = this.#entries[limit] as CountedLimit
    return shareOf(this.#claims, limit, this.#got, partOf(spec, free))
  }

  /** How long a call with these costs waits if they exceed this pod's part. */
  partWaitUs(costs: readonly number[]): number {
    let longest = SHARE_RETRY_US
    // Pods that are due send their request soon. Units they leave are free.
    if (this.#claims.some(({ most }) => most === undefined)) return longest
    for (const [limit, { spec, count }] of this.#entries.entries()) {
      const cost = costs[limit] as number
      const claimed = claimedBefore(this.#claims, limit, this.#got + partOf(spec, cost))
      const ahead = Math.ceil((claimed * capacity(spec)) / WHOLE)
      longest = Math.max(longest, waitBehindUs(spec, count, this.#now, cost, ahead))
    }
    return longest
  }

  /** A call was granted. Of several limits, the one of which it takes the largest part counts. */
  granted(costs: readonly number[]): void {
    if (this.#rivals.length === 0) return
    const parts = this.#entries.map(({ spec }, index) => partOf(spec, costs[index] as number))
    // 0 for a release without limits.
    this.#got += Math.max(0, ...parts)
  }

  /**
   * Units that the pods before this one need, per limit: all of them, or those that have just become due. Of these,
   * pods that were granted more come after this one; otherwise each of the two would leave the last free unit to the
   * other.
   */
  needsAhead(onlyDue: boolean): number[] {
    const { waiting } = this.#list
    const ahead = this.#own === -1 ? waiting.length : this.#own
    return this.#entries.map(({ spec }) => {
      let units = 0
      for (let index = 0; index < ahead; index++) {
        const { wakeUs, need, got } = waiting[index] as WaitingPod
        const isDue = wakeUs <= this.#now && this.#now < wakeUs + RESERVED_US && got <= this.#got
        if (!onlyDue || isDue) units += need[spec.id] ?? 0
      }
      return units
    })
  }

  /** How long a call of these costs has to sleep behind the pods ahead; 0: it fits. */
  waitUs(costs: readonly number[], served: boolean): number {
    const ahead = served ? this.#needsOfOthers() : this.needsAhead(false)
    let longest = 0
    for (const [index, { spec, count }] of this.#entries.entries()) {
      const behind = Math.floor((ahead[index] ?? 0) / 2)
      const wait = waitBehindUs(spec, count, this.#now, costs[index] as number, behind)
      longest = Math.max(longest, wait)
    }
    return longest
  }

  /**
   * The request has ended. A pod that got something goes to the end. One that does not wait leaves, or is remembered if
   * others claim a part. `costs`: of its first call that was not granted.
   */
  end(granted: number, waitUs: number, costs: readonly number[] | undefined): void {
    const waiter = this.#waiter
    if (waiter === undefined) return
    const { waiting } = this.#list
    const waits = costs !== undefined && waitUs > 0 && waitUs <= waiter.forUs
    const isRemembered = this.#rivals.length > 0 && (granted > 0 || this.#got > 0)
    const stays = waits || isRemembered
    if (this.#own !== -1 && (!stays || granted > 0)) waiting.splice(this.#own, 1)
    this.changed ||= this.#own !== -1 || stays
    if (!stays) return
    const entry: WaitingPod = {
      pod: waiter.pod,
      lane: this.#lane,
      wakeUs: waits ? this.#now + waitUs : this.#now,
      need: waits ? this.#needOf(costs) : {},
      waits,
      got: this.#got,
    }
    if (this.#own !== -1 && granted === 0) waiting[this.#own] = entry
    else if (waiting.length < MAX_WAITING) waiting.push(entry)
    if (this.#rivals.length > 0) this.#subtractLeast()
  }

  /** Wakes the next pod if there is enough for it and for those that are due before it. */
  wakeNext(): WakeMessage | undefined {
    const message = wakeNext(this.#list, this.#entries, this.#now, this.#waiter?.pod, this.#lane)
    this.changed ||= message !== undefined
    return message
  }

  /** Only differences count. They are bounded: no pod has to make up for more than a whole limit. */
  #subtractLeast(): void {
    const least = Math.min(this.#got, ...this.#rivals.map(({ got }) => got))
    for (const each of this.#list.waiting) {
      each.got = Math.min(WHOLE, Math.max(0, each.got - least))
    }
  }

  #needsOfOthers(): number[] {
    const { waiting } = this.#list
    return this.#entries.map(({ spec }) =>
      waiting.reduce(
        (sum, each, index) => (index === this.#own ? sum : sum + (each.need[spec.id] ?? 0)),
        0,
      ),
    )
  }

  #needOf(costs: readonly number[]): Record<string, number> {
    const need: Record<string, number> = {}
    for (const [index, { spec }] of this.#entries.entries()) {
      const cost = Math.min(costs[index] as number, capacity(spec))
      if (cost > 0) need[spec.id] = cost
    }
    return need
  }
}

/** How long before its time a pod begins to claim a part. */
function claimsBeforeUs(entries: readonly CountedLimit[], { need }: WaitingPod): number {
  let longest = SHARE_RETRY_US
  for (const { spec } of entries) {
    if (isSaved(spec)) longest = Math.max(longest, unitsToUs(spec, need[spec.id] ?? 0))
  }
  return longest
}

function mostWhileAsleep(
  entries: readonly CountedLimit[],
  need: Readonly<Record<string, number>>,
): number[] {
  return entries.map(({ spec }) => (isSaved(spec) ? partOf(spec, need[spec.id] ?? 0) : 0))
}

/** Units that are not used are still free later. A fixed window loses them at its end, a leaky bucket at once. */
function isSaved({ algorithm }: LimitSpec): boolean {
  return algorithm === 'sliding-window' || algorithm === 'token-bucket'
}

export function partOf(spec: LimitSpec, units: number): number {
  return Math.floor((units * WHOLE) / capacity(spec))
}

/** Wakes the next pod, if there is enough for it. `asker` has just asked and is not woken. */
export function wakeNext(
  list: WaitingList,
  entries: readonly CountedLimit[],
  now: number,
  requester?: string,
  lane?: string,
): WakeMessage | undefined {
  const next = nextToWake(list, entries, now, requester, lane)
  const from = Math.max(list.nextMessageUs, now)
  if (next === undefined || from - now > MESSAGE_BURST_US) return undefined
  list.nextMessageUs = from + MESSAGE_US
  next.wakeUs = now
  return { pod: next.pod, lane: next.lane }
}

/** After how long to call `wakeNext` again; 0: there is not enough for a further pod. */
export function wakeAgainUs(
  list: WaitingList,
  entries: readonly CountedLimit[],
  now: number,
): number {
  if (nextToWake(list, entries, now) === undefined) return 0
  return Math.max(WAKE_AGAIN_US, list.nextMessageUs - MESSAGE_BURST_US - now)
}

/** The first pod that is not due, if there is enough for it and for those that are due before it. */
function nextToWake(
  list: WaitingList,
  entries: readonly CountedLimit[],
  now: number,
  requester?: string,
  lane?: string,
): WaitingPod | undefined {
  forgetLate(list, now)
  const due = entries.map(() => 0)
  for (const each of list.waiting) {
    if (each.pod === requester && each.lane === lane) return undefined
    if (each.wakeUs > now) {
      const fits = entries.every(({ spec, count }, index) => {
        const need = each.need[spec.id] ?? 0
        return waitBehindUs(spec, count, now, need, due[index] as number) === 0
      })
      return fits ? each : undefined
    }
    for (const [index, { spec }] of entries.entries()) {
      due[index] = (due[index] as number) + (each.need[spec.id] ?? 0)
    }
  }
  return undefined
}

/** How long until `cost` fits after `ahead` units that others need; 0: it fits now. */
export function waitBehindUs(
  spec: LimitSpec,
  count: Count,
  now: number,
  cost: number,
  ahead: number,
): number {
  if (cost === 0) return 0
  if (spec.algorithm === 'leaky-bucket') {
    return Math.max(0, count.freeAtUs - now) + (ahead > 0 ? unitsToUs(spec, ahead) : 0)
  }
  const units = Math.min(cost + ahead, capacity(spec))
  return fits(spec, count, now, units) ? 0 : Math.max(1, waitUs(spec, count, now, units))
}

function forgetLate(list: WaitingList, now: number): void {
  if (list.waiting.some(({ wakeUs }) => wakeUs + GRACE_US <= now)) {
    list.waiting = list.waiting.filter(({ wakeUs }) => wakeUs + GRACE_US > now)
  }
  if (!list.waiting.some(({ waits }) => waits)) list.waiting = []
}
