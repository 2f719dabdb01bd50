/** All pods: other pods by their heartbeats, this pod by its current state. */
import type { Clock } from 'spillway'
import type { GuardStatus, PodStatus } from 'spillway/internal'
import { readPodStatus } from 'spillway/internal'
import type { Membership } from 'spillway/shared'
import { rounded, shown } from '../shown.js'
import type { StoreStatus } from '../wire/common-types.js'
import type { BreakerCode, Fleet, PodRow } from '../wire/fleet.js'

const MOST_PODS = 500

/** The last report of a pod, and its rates at that time. */
interface Known {
  vitals: PodStatus | undefined
  /** When it was made, by this pod's clock. */
  atMs: number
  rates: ReadonlyMap<string, Rate>
}

interface Rate {
  calls: number
  refused: number
  decided: number
}

const NO_RATES: ReadonlyMap<string, Rate> = new Map()
/** Reports that are closer together than this give no useful rates. */
const LEAST_MS = 200
/** A pod without a report for this long is dropped. */
const SILENT_MS = 5_000

export class FleetWatch {
  readonly #membership: Membership
  readonly #clock: Clock
  readonly #onNote: (text: string) => void
  #known = new Map<string, Known>()
  /** By pod, the last note received. */
  #noted = new Map<string, number>()
  #reading = false

  /** `onNote`: called once with each note that another pod publishes. */
  constructor(membership: Membership, clock: Clock, onNote: (text: string) => void) {
    this.#membership = membership
    this.#clock = clock
    this.#onNote = onNote
  }

  /** As of the last round. */
  get pods(): number {
    return Math.max(1, this.#known.size)
  }

  /** The lanes of each guard that any pod has used, as of the last round. */
  lanes(): ReadonlyMap<string, ReadonlySet<string>> {
    const byGuard = new Map<string, Set<string>>()
    for (const { vitals } of this.#known.values()) {
      for (const { name, lanes } of vitals?.guards ?? []) {
        const known = byGuard.get(name) ?? new Set()
        byGuard.set(name, known)
        for (const lane of lanes) known.add(lane)
      }
    }
    return byGuard
  }

  /** Reads the store. While it is unreachable, the last known state stays. */
  async refresh(): Promise<void> {
    if (this.#reading) return
    this.#reading = true
    try {
      const members = await this.#membership.members()
      const nowMs = this.#clock.now()
      const { pod: self } = this.#membership
      const known = new Map<string, Known>()
      const own = this.#known.get(self)
      if (own !== undefined) known.set(self, own)
      for (const { pod, snapshot, ageMs } of members) {
        // The state of this pod is newer than that in the store.
        if (pod !== self) known.set(pod, this.#update(pod, readPodStatus(snapshot), nowMs - ageMs))
      }
      this.#known = known
      this.#passOnNotes()
    } catch {
      // The next round tries the store again.
    } finally {
      this.#reading = false
    }
  }

  #passOnNotes(): void {
    const { pod: self } = this.#membership
    const noted = new Map<string, number>()
    for (const [pod, { vitals }] of this.#known) {
      let last = this.#noted.get(pod) ?? 0
      for (const { number, text } of vitals?.notes ?? []) {
        if (number <= last || pod === self) continue
        last = number
        this.#onNote(text)
      }
      noted.set(pod, last)
    }
    this.#noted = noted
  }

  /** The current state of this pod. */
  hearOwn(vitals: PodStatus): void {
    const { pod } = this.#membership
    this.#known.set(pod, this.#update(pod, vitals, this.#clock.now()))
  }

  /** Sums of all pods that report in time. */
  totals(): { calls: number; refused: number; inFlight: number; waiting: number } {
    const nowMs = this.#clock.now()
    const sum = { calls: 0, refused: 0, inFlight: 0, waiting: 0 }
    for (const { vitals, atMs, rates } of this.#known.values()) {
      if (nowMs - atMs > SILENT_MS) continue
      for (const { calls, refused } of rates.values()) {
        sum.calls += calls
        sum.refused += refused
      }
      sum.inFlight += sumOf(vitals?.guards ?? [], 'active')
      sum.waiting += sumOf(vitals?.guards ?? [], 'waiting')
    }
    return sum
  }

  tick(at: number, store: Fleet['store']): Fleet {
    const nowMs = this.#clock.now()
    const places = new Map<string, number>()
    const place = (name: string) => {
      const known = places.get(name) ?? places.size
      places.set(name, known)
      return known
    }
    const { pod: self } = this.#membership
    const others = [...this.#known.keys()].filter((pod) => pod !== self).sort()
    const all = [self, ...others]
    const pods = all.slice(0, MOST_PODS).map((pod) => {
      const { vitals, atMs, rates } = this.#known.get(pod) ?? NOTHING
      const ageMs = pod === self ? 0 : Math.max(0, Math.round(nowMs - atMs))
      return podRow(pod, ageMs, vitals, rates, place)
    })
    return {
      at,
      store,
      names: [...places.keys()].map(shown),
      pods,
      podsLeftOut: all.length - pods.length,
    }
  }

  #update(pod: string, vitals: PodStatus | undefined, atMs: number): Known {
    const before = this.#known.get(pod)
    const sinceMs = atMs - (before?.atMs ?? atMs)
    if (before !== undefined && sinceMs < LEAST_MS) {
      return { vitals, atMs: before.atMs, rates: before.rates }
    }
    return { vitals, atMs, rates: ratesBetween(before?.vitals, vitals, sinceMs) }
  }
}

const NOTHING: Known = { vitals: undefined, atMs: Number.NEGATIVE_INFINITY, rates: NO_RATES }

function ratesBetween(
  before: PodStatus | undefined,
  now: PodStatus | undefined,
  sinceMs: number,
): ReadonlyMap<string, Rate> {
  if (before === undefined || now === undefined) return NO_RATES
  const earlier = new Map(before.guards.map((each) => [each.name, each]))
  const rates = new Map<string, Rate>()
  const aSecond = (count: number) => Math.max(0, Math.round((count * 10_000) / sinceMs) / 10)
  for (const guard of now.guards) {
    const then = earlier.get(guard.name)
    if (then === undefined) continue
    const refused = guard.refused - then.refused
    rates.set(guard.name, {
      calls: aSecond(guard.calls - then.calls),
      refused: aSecond(refused),
      decided: aSecond(decidedBetween(then, guard, refused)),
    })
  }
  return rates
}

/** Started calls plus refused calls. A refused retry may count twice. */
function decidedBetween(then: GuardStatus, now: GuardStatus, refused: number): number {
  return Math.max(refused, now.calls - then.calls + then.waiting - now.waiting)
}

function podRow(
  pod: string,
  ageMs: number,
  vitals: PodStatus | undefined,
  rates: ReadonlyMap<string, Rate>,
  place: (guard: string) => number,
): PodRow {
  if (vitals === undefined) return { ...UNKNOWN, pod: shown(pod), ageMs }
  const { pressure, pressureBy } = vitals
  return {
    pod: shown(pod),
    ageMs,
    state: vitals.draining ? 'draining' : vitals.drainRequested ? 'drain-requested' : 'up',
    version: shown(vitals.version),
    upMs: Math.round(vitals.upMs),
    ...(pressure !== undefined && { pressure: rounded(pressure) }),
    ...(pressureBy !== undefined && { pressureBy: shown(pressureBy) }),
    loopMs: rounded(vitals.loopMs),
    loopBusy: rounded(vitals.loopBusy),
    memoryMb: Math.round(vitals.memoryMb),
    inFlight: sumOf(vitals.guards, 'active'),
    waiting: sumOf(vitals.guards, 'waiting'),
    store: vitals.store as StoreStatus,
    guards: vitals.guards.map(({ name, active, waiting, breaker }) => {
      const { calls = 0, refused = 0, decided = 0 } = rates.get(name) ?? {}
      return [place(name), calls, refused, active, waiting, breaker as BreakerCode, decided]
    }),
  }
}

const UNKNOWN = {
  state: 'unknown',
  version: '',
  upMs: 0,
  loopMs: 0,
  loopBusy: 0,
  memoryMb: 0,
  inFlight: 0,
  waiting: 0,
  store: 'memory',
  guards: [],
} satisfies Partial<PodRow>

function sumOf(guards: readonly GuardStatus[], what: 'active' | 'waiting'): number {
  return guards.reduce((sum, guard) => sum + guard[what], 0)
}
