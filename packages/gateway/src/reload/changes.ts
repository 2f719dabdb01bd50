/** Differences between two configurations, by names and paths. Values are left out, because they may be secrets. */
import { isDeepStrictEqual } from 'node:util'
import type { GatewayConfig } from '../config/config.js'

/** Differences between two configurations, as paths. Values are left out, because they may be secrets. */
export interface Changes {
  /** Vendors and routes that are new. */
  readonly added: readonly string[]
  /** Options with another value. */
  readonly changed: readonly string[]
  /** Removed vendors and routes. */
  readonly removed: readonly string[]
  /** Options that changed, but take effect only after a restart. */
  readonly afterRestart: readonly string[]
}

/** Options that a running gateway can change. All others need a restart. */
const LIVE: ReadonlySet<string> = new Set<keyof GatewayConfig>([
  'vendors',
  'routes',
  'callers',
  'body',
  'cors',
  'drain',
  'log',
])

type Names = readonly (keyof GatewayConfig)[]

export function changesBetween(before: GatewayConfig, after: GatewayConfig): Changes {
  const names = Object.keys({ ...before, ...after }) as Names
  const differing = names.filter((name) => !isDeepStrictEqual(before[name], after[name]))
  const plain = differing.filter(
    (name) => LIVE.has(name) && name !== 'vendors' && name !== 'routes',
  )
  const vendors = compare('vendors', before.vendors, after.vendors)
  const routes = compare('routes', before.routes, after.routes)
  // The first matching route wins, so their order is compared, too.
  const reordered = !isDeepStrictEqual(namesOf(before.routes), namesOf(after.routes))
  const moved = reordered && routes.added.length + routes.removed.length === 0 ? ['routes'] : []
  return {
    added: [...vendors.added, ...routes.added],
    changed: [...vendors.changed, ...routes.changed, ...moved, ...plain],
    removed: [...vendors.removed, ...routes.removed],
    afterRestart: differing.filter((name) => !LIVE.has(name)),
  }
}

/** The configuration after the reload: options that need a restart keep their values. */
export function applicable(before: GatewayConfig, after: GatewayConfig): GatewayConfig {
  const fixed = Object.entries(before).filter(([name]) => !LIVE.has(name))
  return { ...after, ...Object.fromEntries(fixed) }
}

/** Job queues and their vendors keep their options until a restart. */
export function boundVendor(before: GatewayConfig, after: GatewayConfig): string | undefined {
  for (const { name, vendor } of before.jobQueues ?? []) {
    const [was, is] = [before, after].map(({ vendors }) => vendors.find((v) => v.name === vendor))
    const why = `without a restart: the queue ${name} is for it`
    if (is === undefined) return `vendors.${vendor} cannot go ${why}`
    // Lanes are named after keys where there are several.
    const same = isDeepStrictEqual(namesOf(was?.keys ?? []), namesOf(is.keys))
    if (!same) return `vendors.${vendor}.keys cannot have other names ${why}`
  }
  return undefined
}

interface Named {
  readonly name: string
}

function compare(where: string, before: readonly Named[], after: readonly Named[]) {
  const [old, young] = [byName(before), byName(after)]
  const at = (names: Iterable<string>) => [...names].map((name) => `${where}.${name}`)
  return {
    added: at([...young.keys()].filter((name) => !old.has(name))),
    removed: at([...old.keys()].filter((name) => !young.has(name))),
    changed: [...young].flatMap(([name, each]) => {
      const was = old.get(name)
      if (was === undefined || isDeepStrictEqual(was, each)) return []
      return partsOf(was, each).map((part) => `${where}.${name}.${part}`)
    }),
  }
}

/** Options of a guard are at the same level as those of its vendor. */
function partsOf(before: object, after: object): string[] {
  const [old, young] = [flat(before), flat(after)]
  const names = Object.keys({ ...old, ...young })
  return names.filter((name) => !isDeepStrictEqual(old[name], young[name]))
}

function flat(each: object): Record<string, unknown> {
  const { guard, ...own } = each as Record<string, unknown>
  return { ...own, ...(guard as object | undefined) }
}

function byName(list: readonly Named[]): Map<string, Named> {
  return new Map(list.map((each) => [each.name, each]))
}

function namesOf(list: readonly Named[]): string[] {
  return list.map(({ name }) => name)
}
