/** Resolves the targets of routes, and creates the default routes if there are none. */

import type { ErrorKind } from 'spillway/internal'
import { suggest } from 'spillway/options'
import type { ProtocolName, RouteConfig, TargetConfig } from '../../config.js'
import type { ConfigProblem } from '../../config-error.js'
import { DEFAULT_PATHS, defaultRouteName, type LlmProtocol } from '../../default-paths.js'
import type { WrittenVendor } from '../vendor-shape.js'
import { fallbackAnswers, kindOf, kindsOf } from './fallback-shape.js'
import { checkOverlaps, type LinkedRoute } from './route-overlaps.js'
import type { WrittenRoute } from './route-shape.js'

type Vendors = ReadonlyMap<string, WrittenVendor>

/** Routes that lead to the vendors there are. */
export function linkRoutes(
  routes: readonly WrittenRoute[] | undefined,
  path: string,
  vendors: Vendors,
  problems: ConfigProblem[],
): RouteConfig[] {
  // Invalid lists and unknown vendors were reported before.
  if (routes === undefined || vendors.size === 0) return []
  if (routes.length === 0) {
    const message = 'must have at least one route; leave it out for one to each vendor'
    problems.push({ path, message })
  }
  const names = new Map<string, number>()
  const linked: LinkedRoute[] = []
  const all = routes.flatMap((written, index) => {
    const at = `${path}[${index}]`
    // Invalid routes were reported before.
    if (written === undefined) return []
    const route = linkRoute(written, at, vendors, problems)
    const before = names.get(route.name)
    if (before === undefined || route.paths.length === 0) names.set(route.name, index)
    else problems.push(complaintOfTwo(written, at, `${path.slice(1)}[${before}]`))
    const protocol = vendors.get(route.targets[0]?.vendor)?.protocol
    const hasPath = written.path !== undefined
    if (protocol !== undefined) linked.push({ index, route, protocol, hasPath })
    return [route]
  })
  checkOverlaps(linked, path, problems)
  return all
}

function complaintOfTwo({ name }: WrittenRoute, at: string, before: string): ConfigProblem {
  if (name !== undefined) return { path: `${at}.name`, message: `duplicates the name of ${before}` }
  return { path: at, message: `has the path and models of ${before}, which comes first` }
}

function linkRoute(
  written: WrittenRoute,
  at: string,
  vendors: Vendors,
  problems: ConfigProblem[],
): RouteConfig {
  const choices = linkChoices(written, at, vendors, problems)
  const [first] = choices
  const vendor = first === undefined ? undefined : vendors.get(first.vendor)
  const protocol = vendor?.protocol
  if (protocol !== undefined) checkProtocol(written, at, protocol, problems)
  if (written.models?.length === 0) {
    problems.push({ path: `${at}.models`, message: 'must have at least one model' })
  }
  const { path, stripPrefix, models } = written
  const defaultsOf = path === undefined && isLlm(protocol) ? protocol : undefined
  if (stripPrefix !== undefined && path !== undefined && !isPrefix(stripPrefix, path)) {
    const message = `must be what the route's path begins with, without a * and a / at its end`
    problems.push({ path: `${at}.stripPrefix`, message })
  }
  const answers = fallbackAnswers(written.fallbacks ?? [])
  return {
    name: written.name ?? nameOf(path, defaultsOf, models),
    paths: pathsOf(path, defaultsOf),
    defaultsOf,
    models,
    choices: choices.length,
    targets: [
      ...choices,
      ...linkFallbacks(written, choices, at, vendors, problems),
    ] as unknown as RouteConfig['targets'],
    ...(answers.length > 0 && { fallbackAnswers: answers }),
    timeoutMs: written.timeoutMs,
    keepAliveMs: written.keepAliveMs,
    stripPrefix,
  }
}

function isLlm(protocol: ProtocolName | undefined): protocol is LlmProtocol {
  return protocol !== undefined && protocol !== 'http'
}

function nameOf(
  path: string | undefined,
  defaultsOf: LlmProtocol | undefined,
  models: readonly string[] | undefined,
): string {
  const where = path ?? (defaultsOf && defaultRouteName(defaultsOf))
  return [where, models?.join(',')].filter(Boolean).join(' ')
}

/** Empty if a mistake in the route was reported. */
function pathsOf(
  path: string | undefined,
  defaultsOf: LlmProtocol | undefined,
): RouteConfig['paths'] {
  if (path !== undefined) return [{ path, methods: undefined }]
  return defaultsOf === undefined ? [] : DEFAULT_PATHS[defaultsOf]
}

function isPrefix(prefix: string, path: string): boolean {
  return (
    !/[*/]$/.test(prefix) && /^($|[/*])/.test(path.slice(prefix.length)) && path.startsWith(prefix)
  )
}

function checkProtocol(
  written: WrittenRoute,
  at: string,
  protocol: ProtocolName,
  problems: ConfigProblem[],
): void {
  const isHttp = protocol === 'http'
  const complain = (option: string, message: string) => {
    problems.push({ path: `${at}.${option}`, message, at: 'key' })
  }
  if (isHttp && written.path === undefined)
    complain('path', 'must be given for a vendor of protocol http')
  if (!isHttp && written.stripPrefix !== undefined) {
    complain(
      'stripPrefix',
      `has an effect only with protocol http, and this vendor's is ${protocol}`,
    )
  }
  if (isHttp && written.models !== undefined)
    complain('models', 'has no meaning with protocol http')
  if (isHttp && written.model !== undefined) complain('model', 'has no meaning with protocol http')
}

function findVendor(
  name: string | undefined,
  at: string,
  vendors: Vendors,
  problems: ConfigProblem[],
): WrittenVendor | undefined {
  if (name === undefined) return undefined
  const vendor = vendors.get(name)
  if (vendor === undefined) {
    const message = `there is no vendor of this name; ${hint(name, [...vendors.keys()])}`
    problems.push({ path: at, message })
  }
  return vendor
}

function hint(name: string, known: readonly string[]): string {
  const close = suggest(name, known)
  return close === undefined ? `known: ${known.join(', ')}` : `did you mean '${close}'?`
}

/** The primary targets of a route: one, or several to choose from. */
function linkChoices(
  route: WrittenRoute,
  at: string,
  vendors: Vendors,
  problems: ConfigProblem[],
): TargetConfig[] {
  const { vendor, key, model, pick } = route
  if (route.vendors === undefined) {
    if (pick === 'headroom') {
      const message = 'needs vendors: a list of those to pick from'
      problems.push({ path: `${at}.pick`, message, at: 'key' })
    }
    if (vendor === undefined) {
      problems.push({
        path: `${at}.vendor`,
        message: 'must be the name of a vendor, got undefined',
      })
    }
    findVendor(vendor, `${at}.vendor`, vendors, problems)
    checkKey(key, vendor ?? '', at, vendors, problems)
    return [{ vendor: vendor ?? '', key, model }]
  }
  checkList(route, at, problems)
  const targets: TargetConfig[] = []
  const seen = new Set<string>()
  for (const [index, choice] of route.vendors.entries()) {
    // Invalid targets were reported before.
    if (choice?.vendor === undefined) continue
    const path = `${at}.vendors[${index}]`
    const first = targets[0]?.vendor
    if (first === undefined) findVendor(choice.vendor, path, vendors, problems)
    else if (first !== choice.vendor) {
      checkSameProtocol(choice.vendor, first, path, vendors, problems)
    }
    checkKey(choice.key, choice.vendor, path, vendors, problems)
    for (const each of keysOf(choice, vendors)) {
      const target = { vendor: choice.vendor, key: each, model: choice.model ?? model }
      const whole = wholeOf(target, vendors)
      if (seen.has(whole)) problems.push({ path, message: 'is listed twice' })
      seen.add(whole)
      targets.push(target)
    }
  }
  return targets
}

function checkList(
  { vendor, key, pick, vendors }: WrittenRoute,
  at: string,
  problems: ConfigProblem[],
) {
  const complain = (option: string, message: string) => {
    problems.push({ path: `${at}.${option}`, message, at: 'key' })
  }
  if (vendor !== undefined) complain('vendor', 'must not come together with vendors')
  if (key !== undefined) complain('key', 'stands with one of the vendors in the list')
  if (pick === 'order')
    complain(
      'pick',
      `of several vendors one is picked by 'headroom'; an order is what fallbacks have`,
    )
  if (vendors?.length === 0) complain('vendors', 'must have at least one vendor')
}

/** Each key is a separate target, because a vendor counts keys separately. */
function keysOf(
  { vendor, key }: Pick<TargetConfig, 'vendor'> & { key?: string | undefined },
  vendors: Vendors,
): readonly (string | undefined)[] {
  if (key !== undefined) return [key]
  const names = vendors.get(vendor)?.keyNames ?? []
  return names.length > 1 ? names : [undefined]
}

/** Targets that are tried afterwards; missing options are those of the route. */
function linkFallbacks(
  route: WrittenRoute,
  choices: readonly TargetConfig[],
  at: string,
  vendors: Vendors,
  problems: ConfigProblem[],
): TargetConfig[] {
  const { key, model } = route
  const vendor = choices[0]?.vendor ?? ''
  const targets: TargetConfig[] = []
  const tried = new Set(choices.map((each) => wholeOf(each, vendors)))
  // A target may be listed twice: as a fallback for failures, and with `when` for times of pressure.
  const triedUnderPressure = new Set(tried)
  // A target may also be listed once for each kind of error.
  const triedAfter = new Map<ErrorKind, Set<string>>()
  for (const [index, written] of (route.fallbacks ?? []).entries()) {
    // Invalid fallbacks have been reported already. Answers without a vendor are not targets.
    if (written === undefined || kindOf(written) !== undefined) continue
    const path = `${at}.fallbacks[${index}]`
    const isOther = written.vendor !== undefined && written.vendor !== vendor
    if (isOther) checkSameProtocol(written.vendor, vendor, path, vendors, problems)
    const target = {
      vendor: written.vendor ?? vendor,
      // Keys belong to a vendor, so another vendor starts with its first key.
      key: written.key ?? (isOther ? undefined : key),
      model: written.model ?? model,
      ...(written.when && { when: written.when }),
      ...(written.on && { on: kindsOf(written) }),
    }
    if (written.when !== undefined) checkPressure(choices, path, vendors, problems)
    checkKey(written.key, target.vendor, path, vendors, problems)
    const whole = wholeOf(target, vendors)
    const before = written.when === undefined ? tried : triedUnderPressure
    const isRepeated =
      target.on === undefined ? before.has(whole) : isTried(target.on, whole, tried, triedAfter)
    if (isRepeated) {
      const message = 'is where the route went before: needs another vendor, key or model'
      problems.push({ path, message })
    }
    if (target.on === undefined) before.add(whole)
    targets.push(target)
  }
  return targets
}

/** Whether an earlier fallback already uses this target for all of these error kinds. */
function isTried(
  kinds: readonly ErrorKind[],
  whole: string,
  always: ReadonlySet<string>,
  after: Map<ErrorKind, Set<string>>,
): boolean {
  let tried = 0
  for (const kind of kinds) {
    const before = after.get(kind) ?? new Set(always)
    after.set(kind, before)
    if (before.has(whole)) tried++
    before.add(whole)
  }
  return tried > 0 && tried === kinds.length
}

/** Without these options the guard has no pressure, and the target would never be used. */
function checkPressure(
  choices: readonly TargetConfig[],
  at: string,
  vendors: Vendors,
  problems: ConfigProblem[],
): void {
  const blind = choices.find(({ vendor }) => {
    const config = vendors.get(vendor)?.config
    return config !== undefined && !config.guard?.concurrency && !config.guard?.shed
  })
  if (blind === undefined) return
  const message = `needs concurrency.limit or shed of vendor '${blind.vendor}', of which pressure is a fraction`
  problems.push({ path: `${at}.when`, message, at: 'key' })
}

/** A short name of the target. */
function wholeOf({ vendor, key, model }: TargetConfig, vendors: Vendors): string {
  return JSON.stringify([vendor, key ?? vendors.get(vendor)?.keyNames?.[0], model])
}

/** The value is not shown, because it may be the key. */
function checkKey(
  key: string | undefined,
  vendor: string,
  at: string,
  vendors: Vendors,
  problems: ConfigProblem[],
): void {
  const known = vendors.get(vendor)?.keyNames
  if (key === undefined || known === undefined || known.includes(key)) return
  const keys = known.length === 0 ? 'it has none' : hint(key, known)
  problems.push({
    path: `${at}.key`,
    message: `vendor '${vendor}' has no key of this name; ${keys}`,
  })
}

function checkSameProtocol(
  name: string | undefined,
  routeVendor: string,
  at: string,
  vendors: Vendors,
  problems: ConfigProblem[],
): void {
  const own = findVendor(name, `${at}.vendor`, vendors, problems)?.protocol
  const route = vendors.get(routeVendor)?.protocol
  if (own === undefined || route === undefined || own === route) return
  const message = `has the protocol ${own}, but the route's vendor has ${route}; a fallback needs the same protocol`
  problems.push({ path: `${at}.vendor`, message })
}

/** Without `routes`: the default paths of each vendor. */
export function defaultRoutes(
  vendors: Vendors,
  path: string,
  problems: ConfigProblem[],
): RouteConfig[] {
  const all = [...vendors.values()]
  const routes: RouteConfig[] = []
  for (const protocol of ['anthropic', 'openai', 'gemini', 'azure', 'http'] as const) {
    const [first, ...others] = all.filter((vendor) => vendor.protocol === protocol)
    if (first === undefined) continue
    for (const { name } of protocol === 'http' ? [first, ...others] : others) {
      const message =
        protocol === 'http'
          ? 'needs a route: a vendor of protocol http has no default paths'
          : `needs a route: without routes, the default paths of ${protocol} lead to '${first.name}'`
      problems.push({ path: `${path}.${name}`, message, at: 'key' })
    }
    if (protocol !== 'http') routes.push(defaultRoute(first.name, protocol))
  }
  return routes
}

function defaultRoute(vendor: string, protocol: LlmProtocol): RouteConfig {
  return {
    name: defaultRouteName(protocol),
    paths: DEFAULT_PATHS[protocol],
    defaultsOf: protocol,
    models: undefined,
    choices: 1,
    targets: [{ vendor, key: undefined, model: undefined }],
    timeoutMs: undefined,
    keepAliveMs: undefined,
    stripPrefix: undefined,
  }
}
