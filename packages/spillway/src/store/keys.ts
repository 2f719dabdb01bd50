/**
 * The only place where keys are made. All keys of a guard, its lanes included, share a hash tag, so
 * that one script touches one slot of a cluster; so do all keys of a user.
 */

import { hashOfName, isLongName } from '../core/long-name.js'

/** Changes when what is stored under a key changes its form. */
const SCHEMA = '1'
/** Of job queues alone: their form has changed, that of others has not. */
const QUEUES = 'j2'

/** What would end a hash tag early, or blur where a name ends. */
const SPECIAL = /[{}:%\s]/g

export function escaped(name: string): string {
  // Nearly no name needs it, and looking costs a fifth.
  if (name.search(SPECIAL) === -1) return name
  return name.replace(SPECIAL, (char) => `%${char.charCodeAt(0).toString(16).padStart(4, '0')}`)
}

const ESCAPED = /%([\da-f]{4})/g

export function unescaped(name: string): string {
  return name.replace(ESCAPED, (_, code: string) => String.fromCharCode(Number.parseInt(code, 16)))
}

export interface Keys {
  /** What all of them begin with. */
  readonly prefix: string
  lane(guard: string, lane: string): string
  guard(guard: string): string
  /** The last settlement of a pod. */
  sequence(guard: string, pod: string): string
  /** What pods report of themselves. */
  reports(guard: string): string
  /** A bucket that `levelKey` named. */
  level(key: string): string
  breaker(guard: string, lane: string): string
  /** The last report of a pod on how calls ended in a lane. */
  outcomes(guard: string, lane: string, pod: string): string
  /** Which pods are alive, of a guard or of another group. */
  pods(group: string): string
  /** What they say of themselves. */
  podSnapshots(group: string): string
  /** What is wanted of them. */
  podAsks(group: string): string
  /** Nobody's: to try on it what may be done with the others. */
  check(tag: string): string
  /** Which epoch of a guard's state this is, and who has a share in it. */
  epoch(guard: string): string
  shares(guard: string): string
  /** All that is kept of a job queue, in the order in which scripts want it. */
  queue(guard: string, queue: string): string[]
  /** No key but what channels begin with: a worker is woken on one of its own. */
  readonly wakes: string
  /** No key but a channel: changes of all jobs are published there. No worker has this name. */
  readonly jobChanges: string
  /** A channel, not a key: tells a pod that there may be permits for calls that wait. */
  permits(pod: string): string
  /** A channel, not a key: tells all pods that limits were changed. */
  readonly limitChanges: string
  /** No key but a channel: changes of all breakers are published there. */
  readonly breakers: string
}

/**
 * A name as a part of a key, at most 1,000 characters long. No escaped name contains a colon, so a name is
 * never mistaken for the hash of another.
 */
export function keyPart(name: string): string {
  return isLongName(name) ? `h:${hashOfName(name)}` : escaped(name)
}

/**
 * A bucket of a user, an address, a tier. The subject is the hash tag, so all levels of one subject
 * are in one slot.
 */
export function levelKey(subject: string, rest: string): string {
  return `{${keyPart(subject)}}:${rest}`
}

/** What it says of itself, those that wait, are delayed, leased, ended, dead; who is parked; jobs, their
 * data, their texts, their keys; the tags of tenants; how many open jobs each tenant has. */
const QUEUE_PARTS = ['m', 'w', 'z', 'l', 'e', 'x', 'p', 'j', 'd', 'r', 'k', 't', 'n'] as const

/** Short, because there may be a million of them. */
export function createKeys(prefix: string): Keys {
  const tagged = (tag: string, rest: string) => `${prefix}${SCHEMA}:{${escaped(tag)}}:${rest}`
  return {
    prefix: `${prefix}${SCHEMA}:`,
    lane: (guard, lane) => tagged(guard, `l:${escaped(lane)}`),
    guard: (guard) => tagged(guard, 'g'),
    sequence: (guard, pod) => tagged(guard, `q:${escaped(pod)}`),
    reports: (guard) => tagged(guard, 'r'),
    level: (key) => `${prefix}${SCHEMA}:${key}`,
    breaker: (guard, lane) => tagged(guard, `b:${escaped(lane)}`),
    outcomes: (guard, lane, pod) => tagged(guard, `o:${escaped(lane)}:${escaped(pod)}`),
    pods: (group) => tagged(group, 'p'),
    podSnapshots: (group) => tagged(group, 's'),
    podAsks: (group) => tagged(group, 'w'),
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
