/**
 * The only place where Redis keys are built. All keys of a guard, including its lanes, share a hash
 * tag, so that one script touches one slot of a cluster. The same holds for all keys of a user.
 */

import { hashOfName, isLongName } from '../core/long-name.js'

/**
 * The format of stored values. Pods of two versions share state only if this number is equal.
 * docs/operations/upgrading.md has the rule for changing it, and a row for each number.
 */
const SCHEMA = '1'
/** The format of job queues, which changes separately by the same rule. */
const QUEUES = 'j2'

/** Characters that would end a hash tag early or make it unclear where a name ends. */
const SPECIAL = /[{}:%\s]/g

export function escaped(name: string): string {
  // Hardly any name needs escaping, and the search takes a fifth of the time.
  if (name.search(SPECIAL) === -1) return name
  return name.replace(SPECIAL, (char) => `%${char.charCodeAt(0).toString(16).padStart(4, '0')}`)
}

const ESCAPED = /%([\da-f]{4})/g

export function unescaped(name: string): string {
  return name.replace(ESCAPED, (_, code: string) => String.fromCharCode(Number.parseInt(code, 16)))
}

export interface Keys {
  /** Prefix of all keys. */
  readonly prefix: string
  lane(guard: string, lane: string): string
  pool(guard: string, pool: string): string
  guard(guard: string): string
  /** The number of a pod's last settlement. */
  sequence(guard: string, pod: string): string
  /** Reports of pods. */
  reports(guard: string): string
  /** A bucket named by `levelKey`. */
  level(key: string): string
  breaker(guard: string, lane: string): string
  /** The number of a pod's last report of outcomes in a lane. */
  outcomes(guard: string, lane: string, pod: string): string
  /** The live pods of a guard or of another group. */
  pods(group: string): string
  /** The snapshots of these pods. */
  podSnapshots(group: string): string
  /** Commands for these pods. */
  podCommands(group: string): string
  /** A key without data, to test the permissions of the Redis user. */
  check(tag: string): string
  /** The epoch of a guard's state, and the pods that have a share of its limits. */
  epoch(guard: string): string
  shares(guard: string): string
  /** All keys of a job queue, in the order that the scripts expect. */
  queue(guard: string, queue: string): string[]
  /** Not a key: prefix of the channels on which workers are woken, one per worker. */
  readonly wakes: string
  /** Not a key: the channel for changes of all jobs. No worker has this name. */
  readonly jobChanges: string
  /** Not a key: the channel that wakes a pod when permits for its waiting calls may be free. */
  permits(pod: string): string
  /** Not a key: the channel that notifies all pods of changed limits. */
  readonly limitChanges: string
  /** Not a key: the channel for changes of all breakers. */
  readonly breakers: string
}

/**
 * A name as part of a key, at most 1,000 characters long. An escaped name contains no colon, so a
 * name cannot be mistaken for the hash of another.
 */
export function keyPart(name: string): string {
  return isLongName(name) ? `h:${hashOfName(name)}` : escaped(name)
}

/**
 * The bucket of a user, an address or a tier. The subject is the hash tag, so all levels of one
 * subject are in one slot.
 */
export function levelKey(subject: string, rest: string): string {
  return `{${keyPart(subject)}}:${rest}`
}

/**
 * m: meta. Jobs by state: w waiting, z delayed, l leased, e ended, x dead. p: parked workers. j:
 * jobs, d: their data, r: their results, k: their idempotency keys. t: tags of tenants, n: open
 * jobs per tenant.
 */
const QUEUE_PARTS = ['m', 'w', 'z', 'l', 'e', 'x', 'p', 'j', 'd', 'r', 'k', 't', 'n'] as const

/** Key names are short, because there may be a million of them. */
export function createKeys(prefix: string): Keys {
  const tagged = (tag: string, rest: string) => `${prefix}${SCHEMA}:{${escaped(tag)}}:${rest}`
  return {
    prefix: `${prefix}${SCHEMA}:`,
    lane: (guard, lane) => tagged(guard, `l:${escaped(lane)}`),
    pool: (guard, pool) => tagged(guard, `u:${escaped(pool)}`),
    guard: (guard) => tagged(guard, 'g'),
    sequence: (guard, pod) => tagged(guard, `q:${escaped(pod)}`),
    reports: (guard) => tagged(guard, 'r'),
    level: (key) => `${prefix}${SCHEMA}:${key}`,
    breaker: (guard, lane) => tagged(guard, `b:${escaped(lane)}`),
    outcomes: (guard, lane, pod) => tagged(guard, `o:${escaped(lane)}:${escaped(pod)}`),
    pods: (group) => tagged(group, 'p'),
    podSnapshots: (group) => tagged(group, 's'),
    podCommands: (group) => tagged(group, 'w'),
    check: (tag) => tagged(tag, 'c'),
    epoch: (guard) => tagged(guard, 'e'),
    shares: (guard) => tagged(guard, 'm'),
    queue: (guard, queue) =>
      QUEUE_PARTS.map((part) => tagged(guard, `${QUEUES}:${escaped(queue)}:${part}`)),
    wakes: `${prefix}${SCHEMA}:wake:`,
    jobChanges: `${prefix}${SCHEMA}:wake:changes`,
    permits: (pod) => `${prefix}${SCHEMA}:wake:permits:${escaped(pod)}`,
    limitChanges: `${prefix}${SCHEMA}:wake:limits`,
    breakers: `${prefix}${SCHEMA}:breakers`,
  }
}
