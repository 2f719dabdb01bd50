/** Format of the shared store's options. A URL is never shown, because it may contain a password. */
import {
  about,
  arrayOf,
  bool,
  type Check,
  described,
  duration,
  integer,
  markOptional,
  object,
  optional,
  schemaOf,
  text,
} from 'spillway/options'
import { type RedisStoreOptions, readRedisOptions } from 'spillway/redis'
import type { RedisConfig } from '../config.js'
import type { ConfigProblem } from '../config-error.js'
import { resolve, type Sources, secret, textOrReference } from './secret-reference.js'

const VARIABLE = 'REDIS_URL'
const PEM = /-----BEGIN [A-Z ]+-----/

export function readRedis(sources: Sources): Check<RedisConfig | undefined> {
  const readUrl = urlShape(sources)
  const readObject = object({
    url: about(
      'One server: a reference, or a URL without a password; `rediss:` for TLS. Default: none; one of `url`, `urls` and `sentinels` is required.',
      optional(readUrl),
    ),
    urls: optional(arrayOf(readUrl)),
    sentinels: optional(arrayOf(readUrl)),
    master: optional(text()),
    username: optional(text()),
    password: about(
      'Password: a reference. Default: the one in the URL, or none.',
      optional(secret(sources)),
    ),
    database: optional(integer({ min: 0 })),
    tls: optional(readTls(sources)),
    prefix: optional(text()),
    commandTimeoutMs: optional(duration({ min: 1 })),
  })
  const check: Check<RedisConfig | undefined> = (value, path, problems: ConfigProblem[]) => {
    if (value === undefined) return redisFromEnv(sources, path, problems)
    if (typeof value !== 'object' || value === null) {
      return { url: readUrl(value, path, problems) }
    }
    const before = problems.length
    const store = omitUndefined(readObject(value, path, problems) ?? {})
    if (problems.length > before) return store
    if (['url', 'urls', 'sentinels'].every((way) => !Object.hasOwn(store, way))) {
      const message = `${EXPECTED}, got nothing; or urls of a cluster, or sentinels`
      problems.push({ path: `${path}.url`, message })
    } else readRedisOptions(store, path, problems)
    return store
  }
  const forms = () => ({ anyOf: [schemaOf(readUrl), schemaOf(readObject)] })
  return markOptional(described(check, forms))
}

/** Certificates are no secrets, their keys are. */
function readTls(sources: Sources): Check<NonNullable<RedisStoreOptions['tls']>> {
  const pem = textOrReference(sources, PEM, 'a certificate or key in PEM form')
  const read = object({
    ca: about(
      "Certificates of authorities in PEM format: text or a reference. Default: Node's own.",
      optional(pem),
    ),
    cert: about(
      'Client certificate in PEM format: text or a reference. Default: none.',
      optional(pem),
    ),
    key: about(
      'Private key of `cert` in PEM format: text or a reference. Default: none.',
      optional(pem),
    ),
    servername: about(
      'Name in the certificate of the server. Default: the host of the URL.',
      optional(text()),
    ),
    rejectUnauthorized: about(
      'Refuses a server whose certificate cannot be verified. Default: true.',
      optional(bool()),
    ),
  })
  const check: Check<NonNullable<RedisStoreOptions['tls']>> = (value, path, problems) =>
    omitUndefined(read(value, path, problems) ?? {})
  return described(check, () => schemaOf(read))
}

const EXPECTED = 'must be env:NAME, file:PATH or a redis:// URL'

function urlShape(sources: Sources): Check<string> {
  const check: Check<string> = (value, path, problems) => {
    const found = resolve(value, sources)
    const message = complaintAbout(value, found)
    if (message !== undefined) problems.push({ path, message })
    return found !== undefined && 'value' in found ? found.value : String(value)
  }
  return described(check, { type: 'string', pattern: '^\\s*(env:|file:|rediss?://|unix://)' })
}

function complaintAbout(value: unknown, found: ReturnType<typeof resolve>): string | undefined {
  if (found !== undefined) {
    if ('problem' in found) return found.problem
    return isRedisUrl(found.value) ? undefined : 'must refer to a URL such as redis://host:6379'
  }
  if (value === undefined || value === null) return `${EXPECTED}, got nothing`
  if (typeof value !== 'string' || !isRedisUrl(value)) return EXPECTED
  if (new URL(value).password === '' && !value.includes('?')) return undefined
  return 'must not contain a password: put the URL into a variable and write env:NAME'
}

function isRedisUrl(text: string): boolean {
  if (!URL.canParse(text)) return false
  const { protocol, hostname } = new URL(text)
  return protocol === 'unix:' || (/^rediss?:$/.test(protocol) && hostname !== '')
}

/** Kubernetes sets this variable for all pods of a namespace. */
function redisFromEnv(
  sources: Sources,
  path: string,
  problems: ConfigProblem[],
): RedisConfig | undefined {
  const url = sources.env[VARIABLE]?.trim() ?? ''
  if (url === '') return undefined
  if (!isRedisUrl(url)) {
    const message = `the environment variable ${VARIABLE} must be a URL such as redis://host:6379`
    problems.push({ path, message, at: 'outside' })
  }
  return { url }
}

/** Drops keys with the value undefined. */
function omitUndefined<T extends object>(value: T): { [K in keyof T]?: Exclude<T[K], undefined> } {
  const entries = Object.entries(value).filter(([, each]) => each !== undefined)
  return Object.fromEntries(entries) as { [K in keyof T]?: Exclude<T[K], undefined> }
}
