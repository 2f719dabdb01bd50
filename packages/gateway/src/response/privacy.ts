/**
 * Masks text from clients. Models, paths, users and request ids appear in logs, metrics and headers, and may contain
 * keys or prompts by mistake.
 */

import { randomBytes } from 'node:crypto'
import type { IncomingHttpHeaders } from 'node:http'
import { remembered } from 'spillway/internal'
import { KEY_HEADERS } from '../request/key-headers.js'
import { isShort, LONGEST_NAME } from '../request/validation/short-text.js'

/** Prefixes of the keys of well-known services, or at least 32 letters and digits in a row. */
const KEY_LIKE =
  /\b(?:[prs]k|gh[opsu]|github_pat|glpat|gsk|hf|spw|whsec|xox[a-z])[-_][\w-]{6,}|\b(?:AKIA|ASIA|AIza|eyJ|ya29\.)[\w.-]{12,}|(?<![A-Za-z0-9])(?=[A-Za-z]*\d)(?=\d*[A-Za-z])[A-Za-z0-9]{32,}/
const ALL_KEY_LIKE = new RegExp(KEY_LIKE, 'g')
/** Text without spaces. Text with spaces may be a prompt. */
const ONE_WORD = /^[\x21-\x7e]*$/
const MASK = '***'

/** A shorter text is not a key, and may occur in a path by chance. */
const SHORTEST_KEY = 8

/** Whether `text` contains the client's key. */
export function containsKey(text: string | undefined, key: string | undefined): boolean {
  return key !== undefined && key.length >= SHORTEST_KEY && text?.includes(key) === true
}

function looksLikeKey(text: string): boolean {
  return KEY_LIKE.test(text)
}

/** The name, or a mask if it may be a key or a prompt. */
export const maskedName: (name: string) => string = remembered((name) => {
  const isName = isShort(name) && ONE_WORD.test(name) && !looksLikeKey(name)
  return isName ? name : MASK
})

/** A path in which possible keys are masked. It ends at the first escape, because encoded text may be a prompt. */
export const maskedPath: (path: string) => string = remembered((path) => {
  // Not a path: it may contain a user, a password and a host.
  if (!path.startsWith('/')) return MASK
  const [plain = ''] = path.slice(0, LONGEST_NAME).split('%', 1)
  const readable = plain.replace(ALL_KEY_LIKE, MASK).replace(/[^\x21-\x7e]/g, '?')
  return plain.length === path.length ? readable : `${readable}…`
})

/** The path of a request for logs, traces and messages. A path with the client's key is masked completely. */
export function shownPath(path: string, headers: IncomingHttpHeaders): string {
  return KEY_HEADERS.some((name) => containsKey(path, keyIn(headers[name])))
    ? MASK
    : maskedPath(path)
}

/** Without a scheme, such as `Bearer`. */
function keyIn(header: string | string[] | undefined): string | undefined {
  return typeof header === 'string' ? header.slice(header.lastIndexOf(' ') + 1) : undefined
}

const HEX_ID = /^[0-9a-f]{32}$/
const SANE = /^[\w.:-]{1,128}$/
/** Hexadecimal, because base64url may start with `-`, which `spillway explain` reads as an option. */
const START = randomBytes(12).toString('hex')
let number = 0

/** The client's `x-request-id` if it may be shown, otherwise a new id. */
export function requestIdFor(headers: IncomingHttpHeaders): string {
  const given = headers['x-request-id']
  return typeof given === 'string' && isSane(given, headers) ? given : uniqueId()
}

/** Ids appear in logs, so they must not be keys. 32 hex digits are allowed, because they are common as ids. */
function isSane(given: string, headers: IncomingHttpHeaders): boolean {
  if (!SANE.test(given)) return false
  if (!HEX_ID.test(given) && looksLikeKey(given)) return false
  return !KEY_HEADERS.some((name) => String(headers[name] ?? '').endsWith(given))
}

/** Unique among all requests of all processes. */
export function uniqueId(): string {
  number++
  return `${START}-${number.toString(36)}`
}
