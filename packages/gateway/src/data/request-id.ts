/** A name for each request, the client's own if it has a sane one. */
import { randomBytes } from 'node:crypto'

const SANE = /^[\w.:-]{1,128}$/
const START = randomBytes(12).toString('base64url')
let number = 0

export function requestIdFor(given: string | string[] | undefined): string {
  return typeof given === 'string' && SANE.test(given) ? given : uniqueId()
}

/** One that no other request has, of this process or another. */
export function uniqueId(): string {
  number++
  return `${START}-${number.toString(36)}`
}
