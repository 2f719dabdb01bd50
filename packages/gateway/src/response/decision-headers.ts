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
  readonly standing: UserStanding | undefined
  /** Stages in shadow that would have refused it. */
  readonly shadow: readonly string[] | undefined
}

/** Names and values alternate, which is the fastest form for Node. */
export function addAdmittedHeaders(headers: string[], decision: Admitted): void {
  const { vendor, lane, attempts, waitedMs, step, standing, shadow } = decision
  const degraded = step > 0
  headers.push(
    'spillway-decision',
    `${degraded ? 'fallback' : 'admitted'}${text('vendor', vendor)}` +
      `${lane === undefined ? '' : text('lane', lane)};waited-ms=${Math.round(waitedMs)}` +
      (degraded ? `;step=${step}` : '') +
      (shadow === undefined ? '' : text('shadow', shadow.join(' '))),
    'spillway-vendor',
    vendor,
    'spillway-attempts',
    String(attempts),
    'spillway-degraded',
    degraded ? '?1' : '?0',
  )
  if (standing !== undefined) tellStanding(headers, standing)
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
