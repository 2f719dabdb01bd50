/**
 * Headers with the gateway's decision and the numbers behind it, as structured fields (RFC 9651).
 */

import { SpillwayError } from 'spillway'
import { exhaustedItem, policyItem, standingItem } from 'spillway/http'
import { type RetryAdvice, refusalHeaders, type UserStanding } from 'spillway/internal'
import type { Fault } from './errors.js'

type Headers = Record<string, string | string[]>

export interface Admitted {
  readonly vendor: string
  readonly lane: string | undefined
  readonly attempts: number
  readonly waitedMs: number
  /** Index of the target that answered; 0 is the first choice, the others are fallbacks. */
  readonly step: number
  /** Set if the target was chosen because of the pressure; its model, if it replaces that of the request. */
  readonly pressed?: { readonly model: string | undefined } | undefined
  readonly standing: UserStanding | undefined
  /** Stages in shadow that would have refused it. */
  readonly shadow: readonly string[] | undefined
  /** The answer is a vendor's error, and this refusal ended the attempts after it. */
  readonly refused?: string | undefined
}

/** Names and values alternate, which is the fastest form for Node. */
export function addAdmittedHeaders(headers: string[], decision: Admitted): void {
  const { vendor, lane, attempts, waitedMs, step, pressed, standing, shadow, refused } = decision
  const degraded = step > 0 || pressed !== undefined
  const model = pressed?.model
  headers.push(
    'spillway-decision',
    `${degraded ? 'fallback' : 'admitted'}${text('vendor', vendor)}` +
      `${lane === undefined ? '' : text('lane', lane)};waited-ms=${Math.round(waitedMs)}` +
      (step > 0 ? `;step=${step}` : '') +
      (refused === undefined ? '' : `;refused=${refused}`) +
      (shadow === undefined ? '' : text('shadow', shadow.join(' '))),
    'spillway-vendor',
    vendor,
    'spillway-attempts',
    String(attempts),
    'spillway-degraded',
    model !== undefined ? `model${text('name', model)}` : degraded ? '?1' : '?0',
  )
  if (standing !== undefined) addStandingHeaders(headers, standing)
}

/** An answer of a fallback that needs no vendor. */
export interface FallbackDecision {
  /** The kind of fallback that answered. */
  readonly step: 'cached' | 'static'
  /** Why no target answered. */
  readonly reason: string
  readonly attempts: number
  readonly waitedMs: number
  /** The last vendor that received the request, if any. */
  readonly lastVendor: string | undefined
  /** Age of a cached answer. */
  readonly ageMs?: number | undefined
  /** When the client may retry, for an answer that is an error. */
  readonly retryAfterMs?: number | undefined
}

export function addFallbackHeaders(
  headers: Headers,
  decision: FallbackDecision,
  status: number,
): void {
  const { step, reason, attempts, waitedMs, lastVendor, retryAfterMs } = decision
  headers['spillway-decision'] =
    `fallback;answer=${step};reason=${reason};waited-ms=${Math.round(waitedMs)}`
  if (lastVendor !== undefined) headers['spillway-vendor'] = lastVendor
  headers['spillway-attempts'] = String(attempts)
  headers['spillway-degraded'] = degradedItem(decision)
  if (status >= 400) addRetryHeaders(headers, { code: reason, retryAfterMs }, attempts)
}

/** The kind of fallback, and its age in seconds. */
export function degradedItem({ step, ageMs }: Pick<FallbackDecision, 'step' | 'ageMs'>): string {
  return ageMs === undefined ? step : `${step};age=${Math.floor(ageMs / 1_000)}`
}

/** `error`: a refusal of a guard, or a fault of a request that the gateway reports itself. */
export function addRefusedHeaders(
  headers: Headers,
  error: SpillwayError | Fault,
  attempts: number,
): void {
  const { code, retryAfterMs } = error
  headers['spillway-decision'] =
    error instanceof SpillwayError ? refusedItem(error) : `refused;reason=${code}`
  headers['spillway-attempts'] = String(attempts)
  addRetryHeaders(headers, { code, retryAfterMs }, attempts)
  if (error instanceof SpillwayError && code === 'USER_LIMITED') {
    addExhaustedHeaders(headers, error.details, retryAfterMs)
  }
}

/** Whether and when the client should retry. */
function addRetryHeaders(headers: Headers, advice: RetryAdvice, attempts: number): void {
  Object.assign(headers, refusalHeaders(advice))
  // The gateway has retried already; retries of the client would multiply with its own.
  if (attempts > 0) {
    headers['x-should-retry'] = 'false'
    headers['spillway-retried'] = '1'
  }
}

function refusedItem({ code, stage, scope, details }: SpillwayError): string {
  let item = `refused;stage=${stage};reason=${code};scope=${scope}`
  const used = new Set(['stage', 'reason', 'scope'])
  for (const [name, value] of Object.entries(details)) {
    if (name === 'retryAfterMs') continue
    let key = keyOf(name)
    // Parsers keep only the last parameter of a name, so each gets its own: `shed-reason`.
    while (used.has(key)) key = `${stage}-${key}`
    used.add(key)
    item += parameter(key, value)
  }
  return item
}

/** The headers of the IETF draft on rate limit headers. */
function addStandingHeaders(
  headers: string[],
  { level, limit, windowMs, remaining, resetMs, algorithm }: UserStanding,
): void {
  const policy = { name: level, limit, windowUs: windowMs * 1_000, algorithm }
  const standing = standingItem(policy, { remaining, resetUs: resetMs * 1_000 })
  headers.push('ratelimit-policy', policyItem(policy), 'ratelimit', standing)
}

/** The same headers for a caller whose limit is used up. */
function addExhaustedHeaders(
  headers: Headers,
  details: SpillwayError['details'],
  retryAfterMs = 0,
): void {
  const { level, limit, windowMs, remaining = 0 } = details
  if (typeof limit !== 'number' || typeof windowMs !== 'number') return
  const name = String(level)
  headers['ratelimit-policy'] = policyItem({ name, limit, windowUs: windowMs * 1_000 })
  headers.ratelimit = exhaustedItem(
    { name },
    { remaining: Number(remaining), waitUs: retryAfterMs * 1_000 },
  )
}

function parameter(key: string, value: unknown): string {
  if (typeof value === 'number') {
    const number = structuredNumber(value)
    return number === undefined ? '' : `;${key}=${number}`
  }
  if (typeof value === 'boolean') return `;${key}=?${value ? 1 : 0}`
  return typeof value === 'string' ? text(key, value) : ''
}

/** The largest integer, and the limit of numbers with a fraction (RFC 9651, 3.3). */
const MAX_INTEGER = 999_999_999_999_999
const MAX_DECIMAL = 1e12

/** Undefined if the number cannot be written as a structured field. */
function structuredNumber(value: number): number | undefined {
  if (!(Math.abs(value) <= MAX_INTEGER)) return undefined
  return Math.abs(value) < MAX_DECIMAL ? Number(value.toFixed(3)) : Math.round(value)
}

/** Models and lanes come from clients, so characters that a structured string must not have are replaced. */
function text(name: string, value: string): string {
  return `;${name}="${PLAIN.test(value) ? value : value.replace(NOT_PLAIN, escaped)}"`
}

const PLAIN = /^[\x20\x21\x23-\x5b\x5d-\x7e]*$/
const NOT_PLAIN = /[^\x20\x21\x23-\x5b\x5d-\x7e]/g

function escaped(character: string): string {
  return character === '"' || character === '\\' ? `\\${character}` : '?'
}

/** An application's stage can choose any names for its details. A key has no capitals and begins with a letter. */
function keyOf(name: string): string {
  const kebab = name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)
  const key = kebab.replace(/[^a-z0-9_.*-]/g, '-').replace(/^-+/, '')
  return /^[a-z*]/.test(key) ? key : `detail-${key}`
}
