/** A name for each request, the client's own if it has a sane one. */
import { randomBytes } from 'node:crypto'

const SANE = /^[\w.:-]{1,128}$/
const START = randomBytes(6).toString('base64url')
let number = 0

export function requestIdFor(given: string | string[] | undefined): string {
  if (typeof given === 'string' && SANE.test(given)) return given
  number++
  return `${START}-${number.toString(36)}`
}
