/** The shape of `callers`: clients that may use the gateway. */
import {
  about,
  type Check,
  described,
  object,
  optional,
  readPriority,
  schemaOf,
  text,
} from 'spillway/options'
import { isShort, LONGEST_NAME } from '../../request/validation/short-text.js'
import type { CallerConfig } from '../config.js'
import type { ConfigProblem } from '../config-error.js'
import { hashOfKey, writtenHash } from '../key-hash.js'
import { type Sources, secret } from './secret-reference.js'

const name: Check<string> = (value, path, problems) => {
  const read = readText(value, path, problems)
  if (typeof read === 'string' && !isShort(read)) {
    problems.push({ path, message: `must have at most ${LONGEST_NAME} characters` })
  }
  return read
}
const readText = text()
described(name, { type: 'string', minLength: 1, maxLength: LONGEST_NAME })

export function readCallers(sources: Sources): Check<readonly CallerConfig[]> {
  const readCaller = object({
    key: about(
      'Key that the client sends: a reference, or `sha256:` and its hash.',
      keyHash(sources),
    ),
    user: about('Name of the user, for limits, logs and metrics.', name),
    tier: about(
      'Tier of the user, such as free or pro, for limits and load shedding. Default: none.',
      optional(name),
    ),
    priority: about('Priority of its requests.', optional(readPriority, 'normal')),
  })
  const check: Check<readonly CallerConfig[]> = (value, path, problems: ConfigProblem[]) => {
    if (!Array.isArray(value) || value.length === 0) {
      const message = 'must be an array of callers; leave it out to serve every client'
      problems.push({ path, message })
      return []
    }
    const seen = new Map<string, string>()
    return value.map((item, index): CallerConfig => {
      const at = `${path}[${index}]`
      if (typeof item !== 'object' || item === null || Array.isArray(item)) {
        // The value is not shown, because it is probably the key.
        problems.push({ path: at, message: 'must be an object with key and user' })
        return undefined as never
      }
      const { key, ...rest } = readCaller(item, at, problems)
      const before = seen.get(key)
      if (before !== undefined) {
        problems.push({ path: `${at}.key`, message: `duplicates ${before}` })
      }
      if (key !== '') seen.set(key, `${path.slice(1)}[${index}].key`)
      return { keyHash: key, ...rest }
    })
  }
  return described(check, () => ({ type: 'array', minItems: 1, items: schemaOf(readCaller) }))
}

/** A reference to the key, or its hash; only the hash is kept. Empty if there is none. */
function keyHash(sources: Sources): Check<string> {
  const readKey = secret(sources)
  const check: Check<string> = (value, path, problems) => {
    const written = writtenHash(value)
    if (written !== undefined) return written
    if (typeof value === 'string' && /^\s*sha256:/i.test(value)) {
      const message = 'must have 64 hex digits after sha256:, as spillway hash-key prints them'
      problems.push({ path, message })
      return ''
    }
    const key = readKey(value, path, problems)
    return key === '' ? '' : (writtenHash(key) ?? hashOfKey(key))
  }
  const hash = { type: 'string', pattern: '^\\s*sha256:[0-9A-Fa-f]{64}\\s*$' }
  return described(check, () => ({ anyOf: [schemaOf(readKey), hash] }))
}
