/** Which route a request takes: by its path, then by its model. The first that matches is the one. */
import type { RouteConfig } from '../config/config.js'

type Matcher = (text: string) => boolean

interface Row {
  readonly route: RouteConfig
  readonly path: Matcher
  readonly models: readonly Matcher[] | undefined
}

export class Routes {
  readonly #rows: readonly Row[]
  readonly #byPath = new Map<string, readonly Row[]>()

  constructor(routes: readonly RouteConfig[]) {
    this.#rows = routes.map((route) => ({
      route,
      path: matcher(route.path),
      models: route.models?.map(matcher),
    }))
  }

  /** Those a request on this path may take. */
  onPath(path: string): readonly Row[] {
    const known = this.#byPath.get(path)
    if (known !== undefined) return known
    const rows = this.#rows.filter((row) => row.path(path))
    if (this.#byPath.size >= MOST_PATHS) this.#byPath.clear()
    this.#byPath.set(path, rows)
    return rows
  }

  /** Of those, the one for this model. */
  forModel(rows: readonly Row[], model: string | undefined): RouteConfig | undefined {
    const takes = ({ models }: Row) =>
      models === undefined || (model !== undefined && models.some((matches) => matches(model)))
    return rows.find(takes)?.route
  }
}

/** Paths come from requests: no request may fill the memory. */
const MOST_PATHS = 1_000

/** Exact, or with `*` for anything. */
function matcher(pattern: string): Matcher {
  if (!pattern.includes('*')) return (text) => text === pattern
  const parts = pattern.split('*').map((part) => part.replace(/[.+?^${}()|[\]\\]/g, '\\$&'))
  const expression = new RegExp(`^${parts.join('.*')}$`, 's')
  return (text) => expression.test(text)
}
