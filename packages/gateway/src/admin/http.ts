/**
 * Routing and JSON for the admin port, on node:http. With ten routes it needs no framework, and no dependency that
 * requires a newer Node than the gateway does.
 */
import type { IncomingMessage, ServerResponse } from 'node:http'

const MAX_BODY_BYTES = 65_536
const JSON_TYPE = /^application\/json\s*(?:;|$)/i

export interface AdminRequest {
  readonly raw: IncomingMessage
  readonly method: string
  /** Path of the matching route; `undefined` if there is none. Safe to log: it is never the caller's text. */
  readonly route: string | undefined
  /** Address of the client. */
  readonly ip: string
}

export interface AdminResponse {
  /** Default 200. */
  readonly status?: number
  readonly headers?: Readonly<Record<string, string>>
  /** Default JSON, for which `body` is serialized. */
  readonly type?: string
  readonly body: unknown
}

export type AdminHandler = (request: AdminRequest) => AdminResponse | Promise<AdminResponse>

/** A request that cannot be read. */
export class BodyError extends Error {
  readonly status: number

  constructor(status: number, message: string) {
    super(message)
    this.status = status
  }
}

/** Routes by `METHOD /path`. HEAD is answered as GET is. */
export class Routes {
  readonly #handlers = new Map<string, AdminHandler>()

  get(path: string, handler: AdminHandler): void {
    this.#handlers.set(`GET ${path}`, handler)
  }

  post(path: string, handler: AdminHandler): void {
    this.#handlers.set(`POST ${path}`, handler)
  }

  find(method: string, path: string): AdminHandler | undefined {
    return this.#handlers.get(`${method === 'HEAD' ? 'GET' : method} ${path}`)
  }
}

/** The path, without the query. */
export function pathOf({ url = '/' }: IncomingMessage): string {
  const end = url.search(/[?#]/)
  return end === -1 ? url : url.slice(0, end)
}

export function send(
  raw: IncomingMessage,
  response: ServerResponse,
  { status = 200, type = 'application/json; charset=utf-8', headers, body }: AdminResponse,
  common: Readonly<Record<string, string>>,
): void {
  if (response.destroyed || response.headersSent) return
  const text = typeof body === 'string' ? body : JSON.stringify(body)
  response.writeHead(status, {
    ...common,
    ...headers,
    'content-type': type,
    'content-length': Buffer.byteLength(text),
    // The rest of a body that was refused is not read, so the connection cannot be used again.
    ...(raw.complete || !hasBody(raw) ? undefined : { connection: 'close' }),
  })
  response.end(raw.method === 'HEAD' ? undefined : text)
}

/** The JSON in the body of `request`; `undefined` without a body. A form of another site cannot send this type. */
export async function readJson(request: IncomingMessage): Promise<unknown> {
  const type = request.headers['content-type']
  if (type === undefined && !hasBody(request)) return undefined
  if (type === undefined || !JSON_TYPE.test(type)) {
    throw new BodyError(415, 'the body must be JSON, with content-type application/json')
  }
  const text = await readText(request)
  try {
    return JSON.parse(text, rejectPrototypes)
  } catch (error) {
    throw new BodyError(400, `the body is not valid JSON: ${(error as Error).message}`)
  }
}

function hasBody({ headers }: IncomingMessage): boolean {
  const length = headers['content-length']
  return headers['transfer-encoding'] !== undefined || (length !== undefined && length !== '0')
}

async function readText(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = []
  let size = 0
  // The loop does not destroy the request, whose socket the answer needs.
  for await (const chunk of request.iterator({ destroyOnReturn: false })) {
    size += chunk.length
    if (size > MAX_BODY_BYTES) {
      throw new BodyError(413, `the body is larger than ${MAX_BODY_BYTES} bytes`)
    }
    chunks.push(chunk)
  }
  return Buffer.concat(chunks).toString()
}

/** Names that would reach the prototype of an object which copies them. */
function rejectPrototypes(key: string, value: unknown): unknown {
  const isPrototype =
    key === '__proto__' ||
    (key === 'constructor' &&
      typeof value === 'object' &&
      value !== null &&
      Object.hasOwn(value, 'prototype'))
  if (isPrototype) throw new Error(`the name ${key} is not allowed`)
  return value
}
