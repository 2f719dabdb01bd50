/** A name for each request, the client's own if it has a sane one. */
import { randomBytes } from 'node:crypto'
import type { IncomingHttpHeaders } from 'node:http'
import { looksLikeKey } from '../response/privacy.js'

const HEX_ID = /^[0-9a-f]{32}$/
const SANE = /^[\w.:-]{1,128}$/
const START = randomBytes(12).toString('base64url')
let number = 0

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
