/**
 * The configuration contains only the SHA-256 of callers' keys. That is enough for random keys; passwords would need a
 * slower hash function.
 */
import { hash } from 'node:crypto'

/** Format of a hash that replaces a key. */
const WRITTEN = /^sha256:([0-9a-f]{64})$/i

export function hashOfKey(key: string): string {
  return hash('sha256', key, 'hex')
}

/** The hash in the format of the configuration. */
export function writeHash(key: string): string {
  return `sha256:${hashOfKey(key)}`
}

/** The hash in `text`; undefined if `text` does not have this format. */
export function writtenHash(text: unknown): string | undefined {
  const [, digest] = (typeof text === 'string' && WRITTEN.exec(text.trim())) || []
  return digest?.toLowerCase()
}
