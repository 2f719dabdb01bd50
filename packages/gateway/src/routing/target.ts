/** The vendor, model and key that a request may be sent to, and the order in which targets of a route are tried. */
import type { ErrorKind } from 'spillway/internal'
import type { TargetConfig } from '../config/config.js'
import type { ForwardedHeaders } from '../vendor/forwarded-headers.js'
import type { Vendor } from '../vendor/vendor.js'
import type { VendorAddresses } from '../vendor/vendor-addresses.js'

export interface Target {
  readonly vendor: Vendor
  readonly config: TargetConfig
  readonly ownHeaders: readonly string[]
  readonly forwarded: ForwardedHeaders
  /** Replaces addresses of the vendor in its answers. */
  readonly addresses: VendorAddresses
}

/**
 * The first `choices` targets in the order in which this request tries them; the others follow. The first one is drawn
 * at random, in proportion to the headroom of each: all gateways have the same figures, about a second old, and would
 * otherwise all choose the same target.
 */
export function orderTargets(
  targets: readonly Target[],
  choices: number,
  model: string | undefined,
  random: () => number = Math.random,
): readonly Target[] {
  const headrooms = targets
    .slice(0, choices)
    .map(({ vendor, config }) => vendor.headroom(model, config))
  const total = headrooms.reduce((sum, headroom) => sum + headroom, 0)
  // Without any headroom, in the order of the configuration.
  const first = total > 0 ? drawn(headrooms, random() * total) : 0
  const others = [...headrooms.keys()].filter((index) => index !== first)
  others.sort((a, b) => (headrooms[b] as number) - (headrooms[a] as number))
  const order = [first, ...others].map((index) => targets[index] as Target)
  return targets.length === choices ? order : [...order, ...targets.slice(choices)]
}

/**
 * Targets with `when` come first while the pressure on the vendor of the first target is at least theirs, the highest
 * one before the others, and are left out otherwise.
 */
export function orderByPressure(targets: readonly Target[]): readonly Target[] {
  const withoutPressure = targets.filter(({ config }) => config.when === undefined)
  const [first] = withoutPressure
  if (first === undefined || withoutPressure.length === targets.length) return targets
  const { pressure } = first.vendor
  const preferred = targets
    .filter(({ config: { when } }) => when !== undefined && pressure >= when.pressure)
    .sort((one, other) => (other.config.when?.pressure ?? 0) - (one.config.when?.pressure ?? 0))
  return [...preferred, ...withoutPressure]
}

/** After these errors every further target may help; after others only one whose `on` lists the kind. */
const FOR_ANY_TARGET: ReadonlySet<ErrorKind> = new Set([
  'rate-limited',
  'quota-exhausted',
  'overloaded',
  'server',
])

/** The first target behind this one that is used after an error of this kind. */
export function nextTarget(
  targets: readonly Target[],
  target: Target,
  kind: ErrorKind,
): Target | undefined {
  return targets
    .slice(targets.indexOf(target) + 1)
    .find(({ config: { on } }) => (on === undefined ? FOR_ANY_TARGET.has(kind) : on.includes(kind)))
}

function drawn(headrooms: readonly number[], at: number): number {
  let sum = 0
  for (const [index, headroom] of headrooms.entries()) {
    sum += headroom
    if (headroom > 0 && at < sum) return index
  }
  return headrooms.findLastIndex((headroom) => headroom > 0)
}
