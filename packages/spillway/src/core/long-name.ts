/**
 * Limits the length of names that callers choose (users, addresses, endpoints, tenants, idempotency
 * keys). They become keys in memory and in Redis. Longer names are replaced by their hash, so a
 * caller cannot decide how much memory a key takes.
 */
import { createHash } from 'node:crypto'

/** In characters. */
const LONGEST_NAME = 200

export function isLongName(name: string): boolean {
  return name.length > LONGEST_NAME
}

/** 43 characters, none of which `escaped` would have to escape. */
export function hashOfName(name: string): string {
  return createHash('sha256').update(name).digest('base64url')
}

/** The name itself, or `sha256:` and its hash. */
export function boundedName(name: string): string {
  return isLongName(name) ? `sha256:${hashOfName(name)}` : name
}
