/**
 * The head of an answer: its status, its headers, and how long its body is. At least as strict as Node's
 * own parser: what two programs could read in two ways is an error, not a guess.
 */
import { FieldReader } from './fields.js'
import { malformed } from './wire-error.js'

export interface AnswerHead {
  readonly status: number
  /** Names in small letters and values in turn, as they came. */
  readonly headers: string[]
  /** Bytes of the body; `CHUNKED`, or `UNTIL_CLOSE`. */
  readonly length: number
  /** Bytes of a body that its headers announce although its status or its request allow none. */
  readonly unwantedBytes: number
  /** The connection can be used again, for so long if it says so. */
  readonly keepAliveMs: number
}

export const CHUNKED = -1
export const UNTIL_CLOSE = -2

const DIGITS = /^\d{1,15}$/
/** Among what all `connection` headers name. */
const CLOSE = /(?:^|,)\s*close\s*(?:,|$)/
const KEEP_ALIVE = /(?:^|,)\s*keep-alive\s*(?:,|$)/
const TIMEOUT = /(?:^|[,\s])timeout=(\d{1,9})/i
const MINOR_AT = 7
const CR = 0x0d
const ONE = 0x31
const SPACE = 0x20
const ZERO = 0x30

export const answerFields = new FieldReader(malformed)

/** `text`: up to the empty line, without it. `bodiless`: it answers a HEAD. */
export function readHead(text: string, bodiless: boolean): AnswerHead {
  const headers = answerFields.read(text)
  const status = statusOf(text)
  let length: string | undefined
  let coding: string | undefined
  let connection = ''
  let keepAlive = ''
  for (let i = 0; i < headers.length; i += 2) {
    const name = headers[i] as string
    const value = headers[i + 1] as string
    if (name === 'content-length') {
      if (length !== undefined) throw malformed('says its length twice')
      length = value
    } else if (name === 'transfer-encoding') {
      if (coding !== undefined) throw malformed('says its transfer-encoding twice')
      coding = value
    } else if (name === 'connection') connection += `,${value.toLowerCase()}`
    else if (name === 'keep-alive') keepAlive = value
  }
  const mustBeBodiless = bodiless || status === 204 || status === 304
  const body = bodyLength(length, coding, mustBeBodiless)
  const announced = coding === undefined ? Number(length ?? 0) : Number.POSITIVE_INFINITY
  const unwantedBytes = mustBeBodiless ? announced : 0
  const isNew = text.charCodeAt(MINOR_AT) === ONE
  if (status < 200 && !isNew)
    throw malformed('has a status in between, which HTTP/1.0 does not have')
  const lasts = isNew ? !CLOSE.test(connection) : KEEP_ALIVE.test(connection) && body !== CHUNKED
  // Some vendors send that body nevertheless: the next answer on this connection would begin with it.
  const reusable = lasts && body !== UNTIL_CLOSE && unwantedBytes === 0
  const keepAliveMs = reusable ? timeoutOf(keepAlive) : 0
  return { status, headers, length: body, unwantedBytes, keepAliveMs }
}

/** `HTTP/1.1 200`, and then nothing, or a space and some words. */
function statusOf(text: string): number {
  const hundreds = text.charCodeAt(9) - ZERO
  const tens = text.charCodeAt(10) - ZERO
  const units = text.charCodeAt(11) - ZERO
  const minor = text.charCodeAt(MINOR_AT)
  const next = text.charCodeAt(12)
  const isHttp =
    text.startsWith('HTTP/1.') && (minor === ONE || minor === ZERO) && text.charCodeAt(8) === SPACE
  const isStatus = hundreds >= 1 && hundreds <= 9 && isDigit(tens) && isDigit(units)
  const ends = next === SPACE || next === CR || Number.isNaN(next)
  if (!isHttp || !isStatus || !ends) throw malformed('does not begin as HTTP/1.1 does')
  return hundreds * 100 + tens * 10 + units
}

function isDigit(value: number): boolean {
  return value >= 0 && value <= 9
}

function bodyLength(
  length: string | undefined,
  coding: string | undefined,
  bodiless: boolean,
): number {
  if (length !== undefined && !DIGITS.test(length)) throw malformed('has an odd content-length')
  if (coding !== undefined) {
    if (length !== undefined) throw malformed('has a length and a transfer-encoding')
    if (coding.toLowerCase() !== 'chunked') throw malformed('has an unknown transfer-encoding')
  }
  if (bodiless) return 0
  if (coding !== undefined) return CHUNKED
  return length === undefined ? UNTIL_CLOSE : Number(length)
}

/** How long it may rest; for ever, if the vendor does not say. */
function timeoutOf(keepAlive: string): number {
  if (keepAlive === '') return Number.POSITIVE_INFINITY
  const [, seconds] = TIMEOUT.exec(keepAlive) ?? []
  return seconds === undefined ? Number.POSITIVE_INFINITY : Number(seconds) * 1_000
}
