/**
 * What may be shown of a client's own words. Models, paths, users and request ids end up in logs, metrics
 * and headers, and people put keys and prompts where they do not belong.
 */

import { randomBytes } from 'node:crypto'
import type { IncomingHttpHeaders } from 'node:http'
import { isShort, LONGEST_NAME } from '../request/short-text.js'

/** As the keys of well-known services begin; or a run of letters and digits that nobody would think up. */
const KEY_LIKE =
  /\b(?:[prs]k|gh[opsu]|github_pat|glpat|gsk|hf|spw|whsec|xox[a-z])[-_][\w-]{6,}|\b(?:AKIA|ASIA|AIza|eyJ|ya29\.)[\w.-]{12,}|(?<![A-Za-z0-9])(?=[A-Za-z]*\d)(?=\d*[A-Za-z])[A-Za-z0-9]{32,}/
const ALL_KEY_LIKE = new RegExp(KEY_LIKE, 'g')
/** Of one word: a text with spaces may be a prompt. */
const ONE_WORD = /^[\x21-\x7e]*$/
export const MASK = '***'

/** Shorter ones are no keys, and may well be a part of something else. */
const SHORTEST_KEY = 8

/** Whether the key that a client presents stands in this, too. */
export function containsKey(text: string | undefined, key: string | string[] | undefined): boolean {
  return typeof key === 'string' && key.length >= SHORTEST_KEY && text?.includes(key) === true
}

function looksLikeKey(text: string): boolean {
  return KEY_LIKE.test(text)
}

/** Nearly all requests have the same few. */
const known = new Map<string, string>()
const MOST_KNOWN = 1_000

/** A name: itself if it looks like one, otherwise a mask. */
export function maskedName(name: string): string {
  const before = known.get(name)
  if (before !== undefined) return before
  const isName = isShort(name) && ONE_WORD.test(name) && !looksLikeKey(name)
  const shown = isName ? name : MASK
  if (!isShort(name)) return shown
  if (known.size >= MOST_KNOWN) known.clear()
  known.set(name, shown)
  return shown
}

const knownPaths = new Map<string, string>()

/** A path, without what looks like a key, and without what is encoded: that is text, not a name. */
export function maskedPath(path: string): string {
  const before = knownPaths.get(path)
  if (before !== undefined) return before
  // No path at all: user, password and host may be in it.
  if (!path.startsWith('/')) return MASK
  const [plain = ''] = path.slice(0, LONGEST_NAME).split('%', 1)
  const readable = plain.replace(ALL_KEY_LIKE, MASK).replace(/[^\x21-\x7e]/g, '?')
  const shown = plain.length === path.length ? readable : `${readable}…`
  if (!isShort(path)) return shown
  if (knownPaths.size >= MOST_KNOWN) knownPaths.clear()
  knownPaths.set(path, shown)
  return shown
}

const HEX_ID = /^[0-9a-f]{32}$/
const SANE = /^[\w.:-]{1,128}$/
const START = randomBytes(12).toString('base64url')
let number = 0

/** A name for each request: the client's own, if it may be shown. */
export function requestIdFor(headers: IncomingHttpHeaders): string {
  const given = headers['x-request-id']
  return typeof given === 'string' && isSane(given, headers) ? given : uniqueId()
}

/** It is shown to everybody, so it must not be a key. Ids of 32 hex digits are common, though. */
function isSane(given: string, { authorization, 'x-api-key': key }: IncomingHttpHeaders): boolean {
  if (!SANE.test(given)) return false
  if (!HEX_ID.test(given) && looksLikeKey(given)) return false
  return given !== key && authorization?.endsWith(given) !== true
}

/** One that no other request has, of this process or another. */
export function uniqueId(): string {
  number++
  return `${START}-${number.toString(36)}`
}
