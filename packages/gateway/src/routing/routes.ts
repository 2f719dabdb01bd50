/**
 * Chooses the route of a request: by path and method, then by model. The first one that matches is used.
 * Paths are canonical (`request/validation/request-url.ts`), in the configuration and in requests.
 */
import type { GatewayConfig, RouteConfig } from '../config/config.js'
import { matchesPath, type RoutePath } from '../config/default-paths.js'
import { isShort } from '../request/validation/short-text.js'

type Matcher = (text: string) => boolean

interface Row {
  readonly route: RouteConfig
  readonly paths: readonly RoutePath[]
  readonly models: readonly Matcher[] | undefined
}

export interface RouteQuery {
  readonly method: string
  readonly path: string
  /** The request has an `anthropic-version` header, as those of all Anthropic clients have. */
  readonly fromAnthropicClient: boolean
}

/** `ambiguous`: default routes to OpenAI and to Anthropic both have this path. */
export type RouteMatch = {
  readonly kind: 'found' | 'none' | 'ambiguous'
  readonly rows: readonly Row[]
}

const NONE: RouteMatch = { kind: 'none', rows: [] }
/** Paths come from requests, so the number of remembered ones is limited. */
const MOST_REMEMBERED = 1_000

export class Routes {
  readonly #rows: readonly Row[]
  readonly #hasAnthropic: boolean
  readonly #remembered = new Map<string, RouteMatch>()

  constructor({ routes, vendors }: Pick<GatewayConfig, 'routes' | 'vendors'>) {
    this.#hasAnthropic = vendors.some(({ protocol }) => protocol === 'anthropic')
    this.#rows = routes.map((route) => ({
      route,
      paths: route.paths,
      models: route.models?.map(matcher),
    }))
  }

  /** The routes that a request may take; its model decides between them. */
  find(query: RouteQuery): RouteMatch {
    const { method, path, fromAnthropicClient } = query
    const key = `${fromAnthropicClient ? 'anthropic ' : ''}${method} ${path}`
    const known = this.#remembered.get(key)
    if (known !== undefined) return known
    const match = this.#match(query)
    if (!isShort(path)) return match
    if (this.#remembered.size >= MOST_REMEMBERED) this.#remembered.clear()
    this.#remembered.set(key, match)
    return match
  }

  /** The first of these routes that matches the model. */
  forModel(rows: readonly Row[], model: string | undefined): RouteConfig | undefined {
    const takes = ({ models }: Row) =>
      models === undefined || (model !== undefined && models.some((matches) => matches(model)))
    return rows.find(takes)?.route
  }

  #match({ method, path, fromAnthropicClient }: RouteQuery): RouteMatch {
    const onPath = this.#rows.filter(({ paths }) =>
      paths.some(
        (each) => matchesPath(each.path, path) && each.methods?.includes(method) !== false,
      ),
    )
    const rows = onPath.filter(
      // A request that is meant for Anthropic must not be sent with the OpenAI key of the gateway.
      ({ route }) => !(fromAnthropicClient && this.#hasAnthropic && route.defaultsOf === 'openai'),
    )
    const [first] = rows
    if (first === undefined) return NONE
    // A path that the configuration names is not ambiguous: the first route with it is used.
    if (fromAnthropicClient || first.route.defaultsOf === undefined) return { kind: 'found', rows }
    const claims = new Set(rows.flatMap(({ route }) => route.defaultsOf ?? []))
    return { kind: claims.size > 1 ? 'ambiguous' : 'found', rows }
  }
}

/** Exact, or with `*` for anything. */
function matcher(pattern: string): Matcher {
  if (!pattern.includes('*')) return (text) => text === pattern
  const parts = pattern.split('*').map((part) => part.replace(/[.+?^${}()|[\]\\]/g, '\\$&'))
  const expression = new RegExp(`^${parts.join('.*')}$`, 's')
  return (text) => expression.test(text)
}
