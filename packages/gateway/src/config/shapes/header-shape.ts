/** Format of headers that are added to every request. */
import { type Check, described } from 'spillway/options'
import type { ConfigProblem } from '../config-error.js'
import { type Sources, secret, textOrReference } from './secret-reference.js'

const HEADER_NAME = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/
const HEADER_VALUE = /^[\t\x20-\x7e\x80-\xff]+$/
/** Headers with credentials. */
const SECRET_HEADER = /authorization|(^|[-_])(api-?)?(key|token|secret|password|cookie)$/i
/** Headers about the connection cannot be set. */
const OWN_HEADERS = new Set([
  'connection',
  'content-length',
  'expect',
  'host',
  'keep-alive',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
])

export function readHeaders(sources: Sources): Check<Readonly<Record<string, string>>> {
  const readSecret = secret(sources)
  const readText = textOrReference(sources, HEADER_VALUE, 'text without line breaks')
  const check: Check<Readonly<Record<string, string>>> = (
    value,
    path,
    problems: ConfigProblem[],
  ) => {
    if (!isObject(value)) {
      problems.push({ path, message: 'must be an object with the names of headers' })
      return {}
    }
    const headers = new Map<string, string>()
    for (const [name, item] of Object.entries(value)) {
      const lower = name.toLowerCase()
      const at = `${path}.${name}`
      const message = complaintAbout(lower, headers)
      if (message !== undefined) problems.push({ path: at, message, at: 'key' })
      const read = SECRET_HEADER.test(name) && !isReference(item) ? readSecret : readText
      headers.set(lower, read(item, at, problems))
    }
    return Object.fromEntries(headers)
  }
  return described(check, { type: 'object', additionalProperties: { type: 'string' } })
}

function complaintAbout(name: string, headers: ReadonlyMap<string, string>): string | undefined {
  if (!HEADER_NAME.test(name)) return 'is no name of a header'
  if (OWN_HEADERS.has(name))
    return 'must not be configured, because the gateway sets this header itself'
  if (headers.has(name)) return 'is written twice, in other letters'
  return undefined
}

function isReference(value: unknown): boolean {
  return typeof value === 'string' && /^\s*(env|file):/.test(value)
}

function isObject(value: unknown): value is object {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
