/**
 * Finds routes of different protocols that could match the same request. The protocol of the first route on its path
 * reads the request before its model is known, so a route of another protocol must not get it afterwards.
 */
import type { ProtocolName, RouteConfig } from '../../config.js'
import type { ConfigProblem } from '../../config-error.js'
import { matchesPath, type RoutePath } from '../../default-paths.js'

export interface LinkedRoute {
  readonly index: number
  readonly route: RouteConfig
  readonly protocol: ProtocolName
  /** Whether the file sets its path. */
  readonly hasPath: boolean
}

/** `path`: of the list of routes. At most one problem for each route. */
export function checkOverlaps(
  routes: readonly LinkedRoute[],
  path: string,
  problems: ConfigProblem[],
): void {
  for (const [position, later] of routes.entries()) {
    const before = routes.slice(0, position)
    for (const earlier of before) {
      if (earlier.protocol === later.protocol) continue
      // Requests for `/v1/models` are distinguished by a header, or refused with AMBIGUOUS_ROUTE.
      if (!earlier.hasPath && !later.hasPath) continue
      const name = `${path.slice(1)}[${earlier.index}]`
      const message = problemOf(earlier, later, before, name)
      if (message === undefined) continue
      const at = `${path}[${later.index}]`
      problems.push({ path: later.hasPath ? `${at}.path` : at, message })
      break
    }
  }
}

/** `before`: all routes before `later`. `name`: of `earlier`. */
function problemOf(
  earlier: LinkedRoute,
  later: LinkedRoute,
  before: readonly LinkedRoute[],
  name: string,
): string | undefined {
  const shared = sharedPaths(earlier.route, later.route)
  const [first] = shared
  if (first === undefined) return undefined
  const protocols = `whose vendor has protocol ${earlier.protocol}, and this vendor's is ${later.protocol}`
  if (
    later.hasPath &&
    earlier.route.paths.some(({ path }) => path === later.route.paths[0]?.path)
  ) {
    return `is also the path of ${name}, ${protocols}; give each protocol its own path`
  }
  // A route without `models` matches everything on its path, so later routes get nothing there.
  const whole = before.filter(({ route }) => route.models === undefined)
  const isTaken = (each: RoutePath) =>
    whole.some(({ route }) => route.paths.some((one) => covers(one, each)))
  const open = shared.find((each) => !isTaken(each))
  if (open !== undefined && earlier.route.models !== undefined) {
    return `overlaps with ${name} on ${open.path}, ${protocols}; a request is read by the protocol of the first route before its model is known, so give each protocol its own path or remove models from ${name}`
  }
  if (!whole.includes(earlier) || !later.route.paths.every(isTaken)) return undefined
  return `is never used, because ${name} takes ${first.path} first, ${protocols}; put this route before it`
}

/** The paths on which both match. */
function sharedPaths(one: RouteConfig, other: RouteConfig): RoutePath[] {
  return one.paths.flatMap((a) =>
    other.paths.flatMap((b) => {
      const methods = sharedMethods(a.methods, b.methods)
      if (methods?.length === 0) return []
      if (matchesPath(a.path, b.path)) return { path: b.path, methods }
      if (matchesPath(b.path, a.path)) return { path: a.path, methods }
      return crosses(a.path, b.path) ? { path: b.path, methods } : []
    }),
  )
}

function sharedMethods(one: RoutePath['methods'], other: RoutePath['methods']) {
  return one === undefined ? other : one.filter((each) => other?.includes(each) !== false)
}

/** Whether every request of `other` is one of `one`. */
function covers(one: RoutePath, other: RoutePath): boolean {
  const { methods } = one
  const takesMethods =
    methods === undefined || other.methods?.every((each) => methods.includes(each)) === true
  return takesMethods && matchesPath(one.path, other.path)
}

/** Whether some paths match both patterns, such as `/a/*:run` and `/a/b*`. */
function crosses(one: string, other: string): boolean {
  if (!one.includes('*') || !other.includes('*')) return false
  const [[head, tail], [otherHead, otherTail]] = [one.split('*'), other.split('*')] as [
    [string, string],
    [string, string],
  ]
  const fit = (a: string, b: string, ends: 'startsWith' | 'endsWith') => a[ends](b) || b[ends](a)
  return fit(head, otherHead, 'startsWith') && fit(tail, otherTail, 'endsWith')
}
