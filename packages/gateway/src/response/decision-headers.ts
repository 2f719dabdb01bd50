/**
 * Headers with the gateway's decision and the numbers behind it, as structured fields (RFC 9651).
 */

import type { SpillwayError } from 'spillway'
import { exhaustedItem, policyItem, standingItem } from 'spillway/http'
import type { UserStanding } from 'spillway/internal'

type Headers = Record<string, string | string[]>

export interface Admitted {
  readonly vendor: string
  readonly lane: string | undefined
  readonly attempts: number
  readonly waitedMs: number
  /** Index of the target that answered; 0 is the first choice, the others are fallbacks. */
  readonly step: number
  /** Set if the target was chosen because of the pressure, with its model if it replaces that of the request. */
  readonly pressed?: { readonly model: string | undefined } | undefined
  readonly standing: UserStanding | undefined
  /** Stages in shadow that would have refused it. */
  readonly shadow: readonly string[] | undefined
}

/** Names and values alternate, which is the fastest form for Node. */
export function addAdmittedHeaders(headers: string[], decision: Admitted): void {
  const { vendor, lane, attempts, waitedMs, step, pressed, standing, shadow } = decision
  const degraded = step > 0 || pressed !== undefined
  const model = pressed?.model
  headers.push(
    'spillway-decision',
    `${degraded ? 'fallback' : 'admitted'}${text('vendor', vendor)}` +
      `${lane === undefined ? '' : text('lane', lane)};waited-ms=${Math.round(waitedMs)}` +
      (step > 0 ? `;step=${step}` : '') +
      (shadow === undefined ? '' : text('shadow', shadow.join(' '))),
    'spillway-vendor',
    vendor,
    'spillway-attempts',
    String(attempts),
    'spillway-degraded',
    model !== undefined ? `model${text('name', model)}` : degraded ? '?1' : '?0',
  )
  if (standing !== undefined) tellStanding(headers, standing)
}

/** An answer of a fallback that needs no vendor. */
export interface FallbackDecision {
  /** What answered. */
  readonly step: 'cached' | 'static'
  /** Why no target did. */
  readonly reason: string
  readonly attempts: number
  readonly waitedMs: number
  /** The last vendor that received the request, if any. */
  readonly asked: string | undefined
  /** Of a cached answer. */
  readonly ageMs?: number | undefined
}

export function addFallbackHeaders(headers: Headers, decision: FallbackDecision): void {
  const { step, reason, attempts, waitedMs, asked } = decision
  headers['spillway-decision'] =
    `fallback;answer=${step};reason=${reason};waited-ms=${Math.round(waitedMs)}`
  if (asked !== undefined) headers['spillway-vendor'] = asked
  headers['spillway-attempts'] = String(attempts)
  headers['spillway-degraded'] = degradedItem(decision)
}

/** What answered, and the age in seconds. */
export function degradedItem({ step, ageMs }: Pick<FallbackDecision, 'step' | 'ageMs'>): string {
  return ageMs === undefined ? step : `${step};age=${Math.round(ageMs / 1_000)}`
}

export function addRefusedHeaders(
  headers: Headers,
  { code, stage, scope, retryAfterMs, details }: SpillwayError,
  attempts: number,
): void {
  let decision = `refused;stage=${stage};reason=${code};scope=${scope}`
  for (const [name, value] of Object.entries(details)) {
    if (name !== 'retryAfterMs') decision += parameter(kebab(name), value)
  }
  headers['spillway-decision'] = decision
  headers['spillway-attempts'] = String(attempts)
  if (retryAfterMs !== undefined) tellRetryAfter(headers, retryAfterMs)
  if (code === 'USER_LIMITED') tellExhausted(headers, details, retryAfterMs)
}

/** `retry-after` in whole seconds, and `retry-after-ms` for SDKs that read it. */
export function tellRetryAfter(headers: Headers, retryAfterMs: number): void {
  headers['retry-after'] = String(Math.max(1, Math.ceil(retryAfterMs / 1_000)))
  headers['retry-after-ms'] = String(Math.ceil(retryAfterMs))
}

/** The headers of the IETF draft on rate limit headers. */
function tellStanding(
  headers: string[],
  { level, limit, windowMs, remaining, resetMs }: UserStanding,
): void {
  const policy = { name: level, limit, windowUs: windowMs * 1_000 }
  const standing = standingItem(policy, { remaining, resetUs: resetMs * 1_000 })
  headers.push('ratelimit-policy', policyItem(policy), 'ratelimit', standing)
}

/** The same headers for a caller whose limit is used up. */
function tellExhausted(
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

function parameter(name: string, value: unknown): string {
  if (typeof value === 'number') {
    return Number.isFinite(value) ? `;${name}=${Number(value.toFixed(3))}` : ''
  }
  if (typeof value === 'boolean') return `;${name}=?${value ? 1 : 0}`
  return typeof value === 'string' ? text(name, value) : ''
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

function kebab(name: string): string {
  return name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)
}
