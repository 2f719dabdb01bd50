/**
 * The endpoint of a request, for limits: its path in the form in which the application's router sees it. Otherwise
 * another spelling of a path would have a separate limit, or none.
 */

const ORIGIN = /^[a-z][a-z0-9+.-]*:\/\/[^/?#]*/i
const ESCAPE = /%[0-9a-f]{2}/gi
const UNRESERVED = /[A-Za-z0-9\-._~]/

/**
 * The path without origin (of an absolute URL), query and fragment. Escapes of unreserved characters are decoded
 * once and all others are in upper case (RFC 3986, 6.2.2).
 */
export function endpointOf(url: string): string {
  const local = url.startsWith('/') ? url : url.replace(ORIGIN, '')
  const end = local.search(/[?#]/)
  const path = end === -1 ? local : local.slice(0, end)
  if (path === '') return '/'
  return path.includes('%') ? path.replace(ESCAPE, canonical) : path
}

function canonical(encoded: string): string {
  const character = String.fromCharCode(Number.parseInt(encoded.slice(1), 16))
  return UNRESERVED.test(character) ? character : encoded.toUpperCase()
}

/** How a router compares paths. */
export interface RouterRules {
  readonly caseSensitive: boolean
  /** Whether a trailing slash makes it another path. */
  readonly strict: boolean
}

/**
 * For routers that ignore case or a trailing slash: maps all spellings of an endpoint to the one in
 * `names`.
 */
export class EndpointNames {
  readonly #names: readonly string[]
  readonly #byRules = new Map<string, ReadonlyMap<string, string>>()

  /** `names`: the endpoints that limits name. */
  constructor(names: readonly string[]) {
    this.#names = names
  }

  find(endpoint: string, rules: RouterRules): string {
    const folded = fold(endpoint, rules)
    return this.#foldedNames(rules).get(folded) ?? folded
  }

  #foldedNames(rules: RouterRules): ReadonlyMap<string, string> {
    const key = `${rules.caseSensitive} ${rules.strict}`
    let names = this.#byRules.get(key)
    if (names === undefined) {
      names = new Map(this.#names.map((name) => [fold(name, rules), name]))
      this.#byRules.set(key, names)
    }
    return names
  }
}

function fold(endpoint: string, { caseSensitive, strict }: RouterRules): string {
  const path = strict || endpoint === '/' ? endpoint : endpoint.replace(/\/$/, '')
  return caseSensitive ? path : path.toLowerCase()
}
