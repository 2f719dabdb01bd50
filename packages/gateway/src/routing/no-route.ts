/** Refusals of requests that match no route. They suggest the route that would allow the request. */
import type { RouteConfig } from '../config/config.js'
import { DEFAULT_PATHS, type LlmProtocol, matchesPath } from '../config/default-paths.js'
import { RequestError } from '../response/errors.js'
import type { RouteQuery } from './routes.js'

/** `shownPath`: the path without keys, as logs have it. */
interface Refused {
  readonly query: RouteQuery
  readonly shownPath: string
  readonly routes: readonly RouteConfig[]
  /** Names of vendors are shown to known callers only. */
  readonly isKnownCaller: boolean
}

export function notFound({ query, shownPath, routes, isKnownCaller }: Refused): RequestError {
  const defaults = routes.filter(({ defaultsOf }) => defaultsOf !== undefined)
  const wanted = protocolOf(query)
  const fitting = defaults.find(({ defaultsOf }) => defaultsOf === wanted) ?? defaults[0]
  const isApi = /^\/(v1(alpha|beta)?|openai)\//.test(query.path)
  const advised =
    isApi && isKnownCaller && fitting !== undefined
      ? `; default routes only generate and list models. ${advice(pattern(shownPath), fitting)}`
      : ''
  const message = `no route for ${query.method} ${shownPath}${baseUrlHint(query.path, routes) ?? advised}`
  return new RequestError({ status: 404, code: 'NOT_FOUND', message })
}

/** The API that the client seems to use. */
export function protocolOf({ path, fromAnthropicClient }: RouteQuery): LlmProtocol {
  if (fromAnthropicClient) return 'anthropic'
  if (/^\/v1(alpha|beta)\//.test(path)) return 'gemini'
  return path.startsWith('/openai/') ? 'azure' : 'openai'
}

const KNOWN_PATHS: ReadonlySet<string> = new Set(
  Object.values(DEFAULT_PATHS).flatMap((paths) => paths.map(({ path }) => path)),
)

/** For clients whose base URL lacks `/v1`, or has it twice because their SDK adds it. */
function baseUrlHint(path: string, routes: readonly RouteConfig[]): string | undefined {
  const isServed = (meant: string) =>
    KNOWN_PATHS.has(meant) &&
    routes.some(({ paths }) => paths.some(({ path: pattern }) => matchesPath(pattern, meant)))
  if (isServed(`/v1${path}`)) {
    return `; did you mean /v1${path}? The base URL of OpenAI clients ends in /v1`
  }
  if (path.startsWith('/v1/v1/') && isServed(path.slice(3))) {
    return `; did you mean ${path.slice(3)}? The base URL of Anthropic clients does not end in /v1`
  }
  return undefined
}

/** Only for callers that are known. */
export function ambiguous({ query, shownPath, routes }: Omit<Refused, 'isKnownCaller'>) {
  const vendors = routes.flatMap(({ defaultsOf, targets }) =>
    defaultsOf === undefined ? [] : targets[0].vendor,
  )
  const other = routes.find(({ defaultsOf }) => defaultsOf === 'openai') as RouteConfig
  const message =
    `the default routes of ${vendors.join(' and ')} both take ${query.method} ${shownPath}; ` +
    `an anthropic-version header chooses Anthropic. ${advice(pattern(shownPath), other)}`
  return new RequestError({ status: 400, code: 'AMBIGUOUS_ROUTE', message })
}

function advice(path: string, { targets: [{ vendor }] }: RouteConfig): string {
  return (
    `To allow it, write "- { path: ${path}, vendor: ${vendor} }" under routes, before the routes ` +
    `"- { vendor: … }", which stand for the default paths of each vendor`
  )
}

/** All ids of a collection: `/v1/files/*` for `/v1/files/file-1`. */
function pattern(shownPath: string): string {
  const [, version, collection, ...rest] = shownPath.split('/')
  return rest.length === 0 ? shownPath : `/${version}/${collection}/*`
}
