/**
 * A fleet in virtual time whose vendor gives less than the fleet is configured for. Callers always want more than the
 * vendor gives. Counts what the vendor accepted and refused in each of its windows.
 */
import type { Guard } from '../src/guard/guard.js'
import type { GuardOptions } from '../src/guard/options.js'
import { createSpillway } from '../src/guard/spillway.js'
import type { SharedLimit } from '../src/shared/rate-limiter/options.js'
import { createHarness } from '../src/testing/harness.js'

export interface VendorPlan {
  /** The vendor's limits, each from a window on, in order. The first begins with window 0. */
  limits: readonly (readonly [fromWindow: number, limit: number])[]
  windowMs: number
  window: 'fixed' | 'sliding'
  retryAfter: boolean
  /** Says how many units are left. */
  headers?: boolean
  /** The first fixed window begins this much after the fleet. */
  phaseMs?: number
  serviceMs?: readonly [number, number]
  unit?: string
  /** Refuses one call in this number, whatever its limit. */
  blipEvery?: number
}

export interface FleetPlan {
  limits: readonly SharedLimit[]
  vendor: VendorPlan
  pods?: number
  callers?: number
  windows?: number
  seed?: number
  /** Units of a call, drawn evenly between two numbers. */
  cost?: readonly [number, number]
  guard?: Partial<GuardOptions>
}

export interface WindowCount {
  limit: number
  accepted: number
  refused: number
  /** Requests, if another unit is counted. */
  calls: number
}

class LimitedVendor {
  readonly #charges: { atMs: number; units: number }[] = []
  #used = 0
  #window = -1
  constructor(readonly plan: VendorPlan) {}

  limitAt(nowMs: number): number {
    const window = Math.floor(nowMs / this.plan.windowMs)
    return this.plan.limits.findLast(([from]) => from <= window)?.[1] as number
  }

  /** How long until the units fit; 0: accepted. */
  take(nowMs: number, units: number): number {
    const { windowMs, window, phaseMs = 0 } = this.plan
    const limit = this.limitAt(nowMs)
    if (window === 'fixed') {
      const current = Math.floor((nowMs + windowMs - phaseMs) / windowMs)
      if (current !== this.#window) this.#used = 0
      this.#window = current
      if (this.#used + units > limit) return (current + 1) * windowMs - windowMs + phaseMs - nowMs
      this.#used += units
      return 0
    }
    while ((this.#charges[0]?.atMs ?? nowMs) + windowMs <= nowMs) {
      this.#used -= this.#charges.shift()?.units as number
    }
    if (this.#used + units > limit) return (this.#charges[0]?.atMs ?? nowMs) + windowMs - nowMs
    this.#charges.push({ atMs: nowMs, units })
    this.#used += units
    return 0
  }

  left(nowMs: number): number {
    return Math.max(0, this.limitAt(nowMs) - this.#used)
  }
}

export async function runLearningFleet(plan: FleetPlan): Promise<WindowCount[]> {
  const { limits, vendor: vendorPlan, pods = 2, callers = 60, windows = 20, seed = 1 } = plan
  const { windowMs, retryAfter, headers: says = false, unit = 'requests' } = vendorPlan
  const [fastest, slowest] = vendorPlan.serviceMs ?? [20, 80]
  const vendor = new LimitedVendor(vendorPlan)
  const harness = createHarness({
    pods,
    seed,
    create({ store, clock, random, name }) {
      const spillway = createSpillway({ store, clock, random, pod: name, expectedPods: pods })
      return spillway.guard('vendor', {
        limits,
        queue: { size: 1_000, timeoutMs: '60s' },
        ...plan.guard,
      })
    },
  })
  const { clock, random } = harness
  const counts: WindowCount[] = Array.from({ length: windows }, (_, window) => {
    return { limit: vendor.limitAt(window * windowMs), accepted: 0, refused: 0, calls: 0 }
  })
  const sleep = (ms: number) => new Promise<void>((resolve) => clock.schedule(ms, resolve))
  let calls = 0

  async function answer(units: number) {
    await sleep(1 + random() * 4)
    const nowMs = clock.now()
    const count = counts[Math.floor(nowMs / windowMs)]
    const isBlip = vendorPlan.blipEvery !== undefined && ++calls % vendorPlan.blipEvery === 0
    const waitMs = isBlip ? 100 : vendor.take(nowMs, units)
    const left: Record<string, string> = {}
    if (says) {
      left[`x-ratelimit-remaining-${unit}`] = String(vendor.left(nowMs))
      left[`x-ratelimit-reset-${unit}`] = `${Math.ceil(waitMs)}ms`
    }
    if (count !== undefined) {
      if (waitMs > 0) count.refused++
      else {
        count.accepted += units
        count.calls++
      }
    }
    if (waitMs > 0) {
      await sleep(2)
      const after = retryAfter ? { 'retry-after': String(Math.ceil(waitMs / 1_000)) } : {}
      return { status: 429, ok: false, headers: new Headers({ ...left, ...after }) }
    }
    await sleep(fastest + random() * (slowest - fastest))
    return { status: 200, ok: true, headers: new Headers(left) }
  }

  async function call(index: number): Promise<void> {
    await sleep(random() * 50)
    for (;;) {
      const [least, most] = plan.cost ?? [1, 1]
      const units = Math.round(least + random() * (most - least))
      const guard = harness.pods[index % pods]?.value as Guard
      try {
        const cost = unit === 'requests' ? undefined : { [unit]: units }
        const { status } = (await guard.run(() => answer(units), { cost })) as { status: number }
        if (status === 429) await sleep(10)
      } catch {
        await sleep(10)
      }
    }
  }

  for (let index = 0; index < callers; index++) void call(index)
  await harness.run(windows * windowMs)
  return counts
}

/** From a window on: the share of refused calls, and the used part of what the vendor gave. */
export function shareFrom(counts: readonly WindowCount[], from: number, until = counts.length) {
  let accepted = 0
  let refused = 0
  let calls = 0
  let given = 0
  for (const each of counts.slice(from, until)) {
    accepted += each.accepted
    refused += each.refused
    calls += each.calls
    given += each.limit
  }
  return { refused: refused / (refused + calls), use: accepted / given }
}

/** The number of windows from `from` until the vendor accepted 85 % of its limit in one. */
export function windowsUntilUsed(counts: readonly WindowCount[], from: number): number {
  const index = counts.slice(from).findIndex(({ accepted, limit }) => accepted >= 0.85 * limit)
  return index === -1 ? Number.POSITIVE_INFINITY : index + 1
}
