/** The refusal of a request whose key is quarantined: the circuit of the key is open. */
import { type Details, SpillwayError } from '../../core/errors.js'
import type { QuarantineReason } from './key-notes.js'

/** Clients should look again within an hour: an operator may release the key before its reset time. */
const LONGEST_RETRY_MS = 3_600_000

const WHY: Record<QuarantineReason, string> = {
  'quota-exhausted': 'its quota is exhausted',
  'invalid-key': 'the vendor says that it is invalid',
  operator: 'an operator quarantined it',
}

const REMEDY: Record<QuarantineReason, string> = {
  'quota-exhausted': 'add another key or raise the quota',
  'invalid-key': 'replace the key',
  operator: 'release it, or wait until then',
}

/** `breaker`: the refusal of the key's breaker. */
export function quarantineError(
  vendor: string,
  key: string,
  reason: QuarantineReason | undefined,
  breaker: SpillwayError,
): SpillwayError {
  const { scope, retryAfterMs = 0, details } = breaker
  return new SpillwayError({
    code: 'CIRCUIT_OPEN',
    stage: 'breaker',
    scope,
    retryAfterMs: Math.min(retryAfterMs, LONGEST_RETRY_MS),
    details: {
      name: vendor,
      key,
      reason: reason ?? 'unknown',
      state: details.state ?? 'open',
      leftMs: Math.round(retryAfterMs),
    },
    explain,
  })
}

function explain({ name, key, reason, state, leftMs }: Details): string {
  const known = Object.hasOwn(WHY, String(reason)) ? (reason as QuarantineReason) : undefined
  const why = known === undefined ? '' : `: ${WHY[known]}`
  const time =
    state === 'half-open' ? 'a request tests it now' : `for ${Math.ceil(Number(leftMs) / 1_000)} s`
  const remedy = known === undefined ? '' : `; ${REMEDY[known]}`
  return `${name}: the key ${key} is quarantined${why} (${time})${remedy}`
}
