/** Identifies an API key in the store: by its configured name and a short hash, never by the secret itself. */
import { createHash } from 'node:crypto'

/** One of our API keys at a vendor. */
export interface KeyId {
  /** Name in the configuration. An operator quarantines and releases by name. */
  readonly name: string
  /** Name and hash. Another secret under the same name is another key. */
  readonly id: string
}

/** Too short to reveal a secret, long enough to distinguish the keys of one vendor. */
const HASH_DIGITS = 12

export function keyIdOf(vendor: string, name: string, secret: string): KeyId {
  const hash = createHash('sha256').update(`spillway key\0${vendor}\0${secret}`).digest('hex')
  return { name, id: `${name}#${hash.slice(0, HASH_DIGITS)}` }
}

/** The name in an id. */
export function keyNameIn(id: string): string {
  const at = id.lastIndexOf('#')
  return at === -1 ? id : id.slice(0, at)
}

/** The group under which the breakers and notes of a vendor's keys are stored. No vendor has a slash in its name. */
export function keysGroup(vendor: string): string {
  return `${vendor}/keys`
}
