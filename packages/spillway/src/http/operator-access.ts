/**
 * Who may read the state and who may change it: one rule for the dashboard and all other operator
 * endpoints.
 *
 * With a token, clients that send it, from anywhere. Without one, clients on this machine. Never a
 * page of another site in an operator's browser: neither one that sends requests here, nor one
 * whose own name is pointed here (DNS rebinding).
 */
import { createHash, timingSafeEqual } from 'node:crypto'
import type { IncomingHttpHeaders } from 'node:http'
import {
  arrayOf,
  bool,
  object,
  oneOf,
  optional,
  renamed,
  text,
  together,
  validate,
} from '../core/options/checks.js'

/** Options of `createOperatorAccess()`. */
export interface OperatorAccessOptions {
  /**
   * The token that operators send as `Authorization: Bearer …`; at least 16 characters, no blanks.
   * Default: none.
   */
  token?: string
  /**
   * Access to read: clients that may act (`operators`), also clients on this machine without a token
   * (`local`), or all clients (`public`). Default: `operators`.
   */
  readAccess?: 'operators' | 'local' | 'public'
  /** Host names besides this machine's own, for a proxy on it. Default: none. */
  hosts?: readonly string[]
  /**
   * Whether other machines can reach its port. Then a local address proves nothing, because proxies
   * make remote clients appear local, and nothing is allowed without a token. Default: false.
   */
  exposed?: boolean
}

/** Why an operator request was denied. */
export interface AccessDenial {
  /** HTTP status to answer with. */
  status: 401 | 403
  /** Machine-readable reason. */
  code: 'UNKNOWN_TOKEN' | 'NO_TOKEN' | 'WRONG_HOST' | 'OTHER_SITE'
  /** What is wrong, for the client. */
  problem: string
}

/** The part of a request that is used. */
export interface AccessRequest {
  /** Method of the request. */
  readonly method?: string | undefined
  /** Headers of the request. */
  readonly headers: IncomingHttpHeaders
  /** The connection. */
  readonly socket: {
    /** Address of the client. */ readonly remoteAddress?: string | undefined
  }
}

/** Decides who may operate a fleet over HTTP. Created by `createOperatorAccess()`. */
export interface OperatorAccess {
  /** Why this request may not read the state; undefined if it may. */
  read(request: AccessRequest): AccessDenial | undefined
  /** Why this request may not change anything; undefined if it may. */
  act(request: AccessRequest): AccessDenial | undefined
  /**
   * Why this request is denied everything: a page of another site sent it, or its host is unknown. Undefined if neither
   * is so.
   */
  checkOrigin(request: AccessRequest): AccessDenial | undefined
  /** What an action requires: the token, nothing (`open`), or it is never allowed (`off`). */
  acts(request: AccessRequest): 'token' | 'open' | 'off'
}

const SHORTEST_TOKEN = 16
/** Characters that a header can carry, without blanks. */
const VISIBLE_ASCII = /^[\x21-\x7e]*$/

const readReadAccess = renamed(oneOf('operators', 'local', 'public'), {
  machine: 'local',
  anybody: 'public',
})

/** Options from before the first release. */
export const RENAMED_ACCESS = { look: 'readAccess' } as const

export const accessFields = {
  token: optional(text()),
  readAccess: optional(readReadAccess, 'operators'),
  hosts: optional(arrayOf(text()), []),
  exposed: optional(bool(), false),
}

/** Checks the token, alone or as one of several options. */
export function checkToken(
  { token }: { token: string | undefined },
  path: string,
  problems: { path: string; message: string }[],
): void {
  if (token === undefined) return
  const complain = (what: string) => {
    problems.push({
      path: `${path}.token`,
      message: `${what}; create one with: openssl rand -hex 24`,
    })
  }
  if (token.length < SHORTEST_TOKEN) complain(`must have at least ${SHORTEST_TOKEN} characters`)
  if (!VISIBLE_ASCII.test(token)) {
    complain('must be visible ASCII characters without blanks, or no header can carry it')
  }
}

const readOptions = together(object(accessFields, RENAMED_ACCESS), checkToken)

/**
 * Creates the access check of an operator endpoint.
 *
 * @example
 * const access = createOperatorAccess({ token: process.env.ADMIN_TOKEN })
 * const denial = access.act(request)
 */
export function createOperatorAccess(options: OperatorAccessOptions = {}): OperatorAccess {
  return new Access(validate('access', options, readOptions))
}

const UNKNOWN_TOKEN: AccessDenial = {
  status: 401,
  code: 'UNKNOWN_TOKEN',
  problem: 'needs the admin token: Authorization: Bearer …',
}
const NOT_LOCAL: AccessDenial = {
  status: 403,
  code: 'NO_TOKEN',
  problem: 'no admin token is set, so only clients on this machine have access',
}
const EXPOSED: AccessDenial = {
  status: 403,
  code: 'NO_TOKEN',
  problem: 'no admin token is set, and other machines can reach this port; set a token',
}
const OTHER_SITE: AccessDenial = {
  status: 403,
  code: 'OTHER_SITE',
  problem: 'requests from pages of other sites are denied',
}

const LOOPBACK = /^(::1|(::ffff:)?127\.\d+\.\d+\.\d+)$/
/**
 * Headers that proxies add for remote clients. Not every proxy does, so behind one a token has to
 * be set.
 */
const PROXY_HEADERS =
  /^(forwarded|via|x-forwarded-.+|x-real-ip|x-client-ip|cf-connecting-ip|true-client-ip)$/
const LOCAL_HOST = /^(localhost|127\.\d+\.\d+\.\d+|\[::1\])$/

class Access implements OperatorAccess {
  readonly #digest: Buffer | undefined
  readonly #readAccess: NonNullable<OperatorAccessOptions['readAccess']>
  readonly #hosts: ReadonlySet<string>
  readonly #exposed: boolean

  constructor({ token, readAccess, hosts, exposed }: ReturnType<typeof readOptions>) {
    this.#digest = token === undefined ? undefined : digestOf(token)
    this.#readAccess = readAccess
    this.#hosts = new Set(hosts.map((host) => host.toLowerCase()))
    this.#exposed = exposed
  }

  read(request: AccessRequest): AccessDenial | undefined {
    const denial = this.checkOrigin(request)
    if (denial !== undefined || this.#readAccess === 'public') return denial
    if (this.#readAccess === 'local' && this.#isLocalClient(request)) return undefined
    return this.#denialWithoutRights(request)
  }

  act(request: AccessRequest): AccessDenial | undefined {
    return this.checkOrigin(request) ?? this.#denialWithoutRights(request)
  }

  checkOrigin(request: AccessRequest): AccessDenial | undefined {
    if (isOtherSite(request)) return OTHER_SITE
    // A client with the token is an operator, under any host name. The names of an exposed port are
    // known to others.
    if (
      this.#exposed ||
      !isLocal(request) ||
      this.#isKnownHost(request) ||
      this.#hasToken(request)
    ) {
      return undefined
    }
    const name = JSON.stringify(nameIn(request).slice(0, 100))
    const problem = `unknown host name ${name}; use localhost, or add the name to hosts`
    return { status: 403, code: 'WRONG_HOST', problem }
  }

  /** The name of `checkOrigin` before the first release. Not part of the interface. */
  stranger(): never {
    throw new TypeError('access.stranger() was renamed: use access.checkOrigin()')
  }

  acts(request: AccessRequest): 'token' | 'open' | 'off' {
    if (this.#digest !== undefined) return 'token'
    return this.act(request) === undefined ? 'open' : 'off'
  }

  #denialWithoutRights(request: AccessRequest): AccessDenial | undefined {
    if (this.#digest !== undefined) return this.#hasToken(request) ? undefined : UNKNOWN_TOKEN
    if (this.#isLocalClient(request)) return undefined
    return this.#exposed ? EXPOSED : NOT_LOCAL
  }

  /** Whether the client is on this machine, used its name, and was not forwarded by a proxy. */
  #isLocalClient(request: AccessRequest): boolean {
    if (this.#exposed || !isLocal(request) || !LOCAL_HOST.test(nameIn(request))) return false
    return !Object.keys(request.headers).some((name) => PROXY_HEADERS.test(name))
  }

  #isKnownHost(request: AccessRequest): boolean {
    const name = nameIn(request)
    const { host = '' } = request.headers
    return LOCAL_HOST.test(name) || this.#hosts.has(name) || this.#hosts.has(host.toLowerCase())
  }

  #hasToken({ headers: { authorization = '' } }: AccessRequest): boolean {
    if (this.#digest === undefined) return false
    const [, shown = ''] = /^Bearer +(\S+)\s*$/i.exec(authorization) ?? []
    return timingSafeEqual(digestOf(shown), this.#digest)
  }
}

/** Digests make the comparison independent of the length. */
function digestOf(token: string): Buffer {
  return createHash('sha256').update(token).digest()
}

function isLocal({ socket }: AccessRequest): boolean {
  return LOOPBACK.test(socket.remoteAddress ?? '')
}

/** The host name of the request, without the port. */
function nameIn({ headers: { host = '' } }: AccessRequest): string {
  return host.replace(/:\d+$/, '').toLowerCase()
}

/**
 * Browsers report the origin of a request; other programs need not. Following a link is harmless.
 */
function isOtherSite({ method = 'GET', headers }: AccessRequest): boolean {
  const { origin, host, 'sec-fetch-site': site, 'sec-fetch-mode': mode } = headers
  if (origin !== undefined) {
    if (!URL.canParse(origin) || new URL(origin).host !== host?.toLowerCase()) return true
  } else if (mode === 'navigate' && headers['sec-fetch-dest'] === 'document' && method === 'GET') {
    return false
  }
  return typeof site === 'string' && site !== 'same-origin' && site !== 'none'
}
