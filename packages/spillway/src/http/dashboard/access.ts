/**
 * Who may look, and who may act. To act takes the token; where none is configured, being on the same machine, in a
 * page that this server itself has served. A page of somebody else that has our address under its own name (DNS
 * rebinding) has another host, and one that sends a form has another origin.
 */
import { createHash, timingSafeEqual } from 'node:crypto'
import type { IncomingMessage } from 'node:http'
import type { Hello } from './wire.js'

export interface AccessOptions {
  /** What an operator has to present. */
  token: string | undefined
  /** Names this is reached under besides the machine's own, through a proxy on the same machine. */
  hosts: readonly string[]
}

export interface Denial {
  status: 401 | 403
  problem: string
}

const NEEDS_TOKEN: Denial = {
  status: 401,
  problem: 'needs the admin token: Authorization: Bearer …',
}

const LOOPBACK = /^(::1|(::ffff:)?127\.\d+\.\d+\.\d+)$/
const LOCAL_HOST = /^(localhost|127\.\d+\.\d+\.\d+|\[::1\])(:\d+)?$/i

export class Access {
  readonly #digest: Buffer | undefined
  readonly #hosts: ReadonlySet<string>

  constructor({ token, hosts }: AccessOptions) {
    this.#digest = token === undefined ? undefined : digestOf(token)
    this.#hosts = new Set(hosts.map((host) => host.toLowerCase()))
  }

  /** Whether somebody may look. From elsewhere it takes the token as well, if there is one: users have names. */
  look(request: IncomingMessage): Denial | undefined {
    if (isNear(request)) return undefined
    if (this.#digest !== undefined) return this.#shows(request) ? undefined : NEEDS_TOKEN
    const { host = '' } = request.headers
    if (!isLoopback(request) || this.#knows(host)) return undefined
    return {
      status: 403,
      problem: `this machine is not called ${JSON.stringify(host.slice(0, 100))}; name it in hosts if it is`,
    }
  }

  /** What it takes to act from there. */
  acts(request: IncomingMessage): Hello['acts'] {
    if (this.#digest !== undefined) return 'token'
    return isNear(request) ? 'open' : 'off'
  }

  act(request: IncomingMessage): Denial | undefined {
    const origin = originProblem(request)
    if (origin !== undefined) return { status: 403, problem: origin }
    if (this.#digest !== undefined) {
      return this.#shows(request) ? undefined : NEEDS_TOKEN
    }
    if (!isNear(request)) {
      return { status: 403, problem: 'without a configured token, only from this machine itself' }
    }
    if (request.headers.origin === undefined) {
      return { status: 403, problem: 'without a configured token, only from the page: no Origin' }
    }
    return undefined
  }

  #shows(request: IncomingMessage): boolean {
    return timingSafeEqual(digestOf(presented(request)), this.#digest ?? digestOf(''))
  }

  #knows(host: string): boolean {
    const name = host.toLowerCase()
    return this.#hosts.has(name) || this.#hosts.has(name.replace(/:\d+$/, ''))
  }
}

/** Whatever its length, comparing takes as long. */
function digestOf(text: string): Buffer {
  return createHash('sha256').update(text).digest()
}

function presented({ headers }: IncomingMessage): string {
  return /^Bearer +(\S+) *$/i.exec(headers.authorization ?? '')?.[1] ?? ''
}

function isLoopback({ socket, headers }: IncomingMessage): boolean {
  // Somebody further away speaks through a proxy on this machine.
  if (headers['x-forwarded-for'] !== undefined || headers.forwarded !== undefined) return false
  return LOOPBACK.test(socket.remoteAddress ?? '')
}

function isNear(request: IncomingMessage): boolean {
  return isLoopback(request) && LOCAL_HOST.test(request.headers.host ?? '')
}

/** A browser says where the page is from that asks; it has to be ours. */
function originProblem({ headers }: IncomingMessage): string | undefined {
  const { origin, host } = headers
  if (headers['sec-fetch-site'] === 'cross-site') return 'not from another site'
  if (origin === undefined) return undefined
  const ours = origin === `http://${host}` || origin === `https://${host}`
  return ours ? undefined : 'not from a page of another origin'
}
