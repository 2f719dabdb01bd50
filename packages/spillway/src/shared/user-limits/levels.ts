/** The levels of user limits: which requests each applies to, and what these are charged. */

import { BoundedCache } from '../../core/collections/bounded-cache.js'
import { isLongName } from '../../core/long-name.js'
import {
  arrayOf,
  type Check,
  type Duration,
  duration,
  either,
  integer,
  OptionsError,
  object,
  oneOf,
  optional,
} from '../../core/options/checks.js'
import { described, describedAs, schemaOf } from '../../core/options/schema.js'
import { escaped, keyPart, levelKey } from '../../store/keys.js'
import type { LevelCharge, LevelRequest } from '../../store/port.js'
import { defaultLevelOutage, levelOutage, type OutageRule } from '../outage/rules.js'

type Limit = number | 'unlimited'

/** One level of user limits. */
export interface UserLevel {
  /**
   * What is counted together: all requests, all users of a tier, one user, one address, one address
   * at one endpoint. A level whose field a request does not have does not apply to it.
   */
  per: 'global' | 'tier' | 'user' | 'ip' | 'endpoint'
  /**
   * Most units in `windowMs`, or `unlimited`. By name: of the endpoint for `endpoint`, of the caller's tier for all others, so
   * `{ per: 'user', limit: { free: 3, pro: 6 } }` limits each user by tier. Missing names are not limited. Range:
   * integers from 1.
   */
  limit: Limit | Readonly<Record<string, Limit>>
  /** Time in which `limit` units are allowed. Range: from 1 ms. */
  windowMs: Duration
  /**
   * How units are counted. `token-bucket`: a burst of `burst` units, then `limit` units per window at a steady rate, so
   * the first window may grant nearly twice the limit. `sliding-window`: never more than `limit` units in any window.
   * Default: `token-bucket`.
   */
  algorithm?: 'token-bucket' | 'sliding-window'
  /** Of a token bucket: units that may be taken at once. Range: integers from 1. Default: the limit. */
  burst?: number
  /**
   * What this pod does with this level while the store is unreachable. `local`: allows the whole limit. `share`: allows
   * its equal part of the limit. `allow`: allows all requests. `refuse`: refuses all. Default: `local` for `user`, `ip` and `endpoint`: each pod counts
   * alone, so one user may get at most the limit times the number of pods; `share` for `global` and `tier`.
   */
  outage?: OutageRule
}

/** The caller of a request. */
export interface Subject {
  /** Id of the user, for levels `per: 'user'`. Default: none. */
  user?: string | undefined
  /** Tier of the user, such as `free` or `pro`, for limits by tier. Default: none. */
  tier?: string | undefined
  /** Address of the client, for levels `per: 'ip'`. Default: none. */
  ip?: string | undefined
  /** Name of the endpoint, for levels `per: 'endpoint'`. Default: none. */
  endpoint?: string | undefined
}

const SUBJECT_FIELDS = ['user', 'tier', 'ip', 'endpoint'] as const

/** Keys are built from these. A numeric id from a database is the usual mistake. */
export function checkSubject(subject: Subject): void {
  for (const field of SUBJECT_FIELDS) {
    const value: unknown = subject[field]
    if (value === undefined || typeof value === 'string') continue
    const remedy =
      value === null
        ? `leave ${field} out where there is none`
        : `convert it, for example with String(${field})`
    const message = `must be a string, got ${shownType(value)}; ${remedy}`
    throw new OptionsError([{ path: field, message }])
  }
}

function shownType(value: unknown): string {
  return typeof value === 'object' && value !== null ? 'an object' : String(value)
}

/** Charge of a request on a level, and the level's policy for clients. */
export interface UserLevelCharge extends LevelCharge {
  readonly per: UserLevel['per']
  /** Outage rule of the level. */
  readonly outage: OutageRule
  /** Name of the level for clients, unique among its kind: `user`, `user-2`. */
  readonly name: string
}

export interface UserRequest extends LevelRequest {
  levels: readonly UserLevelCharge[]
  /** Set if this pod charged it because the store was unreachable. */
  alone?: readonly OutageRule[]
}

export interface Level {
  /** Charge of this request on the level; undefined if the level does not apply to it. */
  chargeFor(subject: Subject): UserLevelCharge | undefined
  /** For a request of cost 1 to which no other level applies. */
  requestFor(subject: Subject): UserRequest | undefined
}

const readOne = either(integer({ min: 1 }), oneOf('unlimited'))

const readLimit: Check<Limit | Record<string, Limit>> = (value, path, problems) => {
  if (typeof value !== 'object' || value === null) return readOne(value, path, problems)
  const fields = Object.fromEntries(Object.keys(value).map((name) => [name, readOne]))
  return object(fields)(value, path, problems)
}
described(readLimit, () => {
  const one = schemaOf(readOne)
  return { anyOf: [one, { type: 'object', additionalProperties: one }] }
})

const readLevel = object({
  per: oneOf('global', 'tier', 'user', 'ip', 'endpoint'),
  limit: readLimit,
  windowMs: duration({ min: 1 }),
  algorithm: optional(oneOf('token-bucket', 'sliding-window'), 'token-bucket'),
  burst: optional(integer({ min: 1 })),
  outage: levelOutage,
})

const readWithOutage: Check<ReturnType<typeof readLevel> & { outage: OutageRule }> = describedAs(
  (value, path, problems) => {
    const level = readLevel(value, path, problems)
    if (level?.algorithm === 'sliding-window' && level.burst !== undefined) {
      const message = `applies to 'token-bucket' only: a sliding window grants at most limit at once`
      problems.push({ path: `${path}.burst`, message })
    }
    return { ...level, outage: level?.outage ?? defaultLevelOutage(level?.per) }
  },
  readLevel,
)

export const readLevels = arrayOf(readWithOutage)

/** Short, because there is a key for every user. */
const LETTER = { global: 'g', tier: 't', user: 'u', ip: 'i', endpoint: 'e' } as const
/** A sliding window is stored in another format than a bucket, so it has a separate key. */
const WINDOW = 'w'

export function createLevels(
  levels: ReturnType<typeof readLevels>,
  name: string | undefined,
): Level[] {
  const seen = new Map<string, number>()
  return levels.map((level) => {
    const number = (seen.get(level.per) ?? 0) + 1
    seen.set(level.per, number)
    const counted = level.algorithm === 'sliding-window' ? WINDOW : ''
    const letter = `${LETTER[level.per]}${number === 1 ? '' : number}${counted}`
    const suffix = name === undefined ? letter : `${letter}:${escaped(name)}`
    return createLevel(level, suffix, number === 1 ? level.per : `${level.per}-${number}`)
  })
}

/** The most specific levels have the highest rank. */
const RANK = { global: 0, tier: 1, user: 2, ip: 3, endpoint: 4 } as const

/** Recent users whose requests are cached. */
const MOST_CACHED = 4_096

function createLevel(
  level: ReturnType<typeof readLevels>[number],
  suffix: string,
  name: string,
): Level {
  const { per, limit, algorithm, burst, outage } = level
  const windowUs = Math.ceil(level.windowMs * 1_000)
  const limitFor = (which = ''): Limit =>
    typeof limit !== 'object' ? limit : (ownEntry(limit, which) ?? 'unlimited')

  /** Caches requests by name, because building a key is slow. Only if the name alone decides the charge. */
  const known =
    typeof limit === 'number' && per !== 'endpoint'
      ? new BoundedCache<string, UserRequest>(MOST_CACHED)
      : undefined

  function requestFor(subject: Subject): UserRequest | undefined {
    const countedName = countedNameOf(per, subject)
    const before = countedName === undefined ? undefined : known?.get(countedName)
    if (before !== undefined) return before
    const units = limitFor(per === 'endpoint' ? subject.endpoint : subject.tier)
    if (countedName === undefined || units === 'unlimited') return undefined
    const rest = per === 'endpoint' ? `${suffix}:${keyPart(subject.endpoint ?? '')}` : suffix
    const charge: UserLevelCharge = {
      key: levelKey(countedName, rest),
      limit: units,
      windowUs,
      algorithm,
      burst: burst ?? units,
      rank: RANK[per],
      per,
      name,
      outage,
    }
    const request = { levels: [charge], cost: 1 }
    if (!isLongName(countedName)) known?.set(countedName, request)
    return request
  }

  return { requestFor, chargeFor: (subject) => requestFor(subject)?.levels[0] }
}

/** The name under which a level counts this request. */
function countedNameOf(per: UserLevel['per'], subject: Subject): string | undefined {
  if (per === 'global') return '*'
  if (per === 'endpoint') return subject.endpoint === undefined ? undefined : subject.ip
  return subject[per]
}

function ownEntry(limits: Readonly<Record<string, Limit>>, name: string): Limit | undefined {
  return Object.hasOwn(limits, name) ? limits[name] : undefined
}
