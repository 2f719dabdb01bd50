/**
 * Callers' keys are known by their SHA-256 and nothing else. That is enough for keys made by a machine;
 * a password would need a slower function, and is no key.
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

/** The hash that is written down; nothing, if this is no such thing. */
export function writtenHash(text: unknown): string | undefined {
  const [, digest] = (typeof text === 'string' && WRITTEN.exec(text.trim())) || []
  return digest?.toLowerCase()
}
