/**
 * The status that a pod sends with every heartbeat: of bounded size, and with a version, because pods of another
 * release read it. Counts are since the pod started; rates are the difference of two heartbeats.
 */
import type { ProcessReading } from '../../local/pod-metrics/process-gauge.js'
import type { StoreStatus } from '../../shared/outage/store-status.js'

const STATUS_VERSION = 1
const MOST_GUARDS = 100
/** Most lanes in a status, over all guards. Other pods read these lists to find the lanes in use. */
const MOST_LANES = 500
const LONGEST_NAME = 200
const MOST_NOTES = 5
const LONGEST_NOTE = 1_500

/** State of a guard's worst lane, as this pod sees it. */
export const BREAKER_CODES = { none: -1, closed: 0, 'half-open': 1, open: 2, isolated: 3 } as const
/** With a quorum: only this pod saw failures. */
export const SELF_ISOLATED = 4

export interface GuardStatus {
  name: string
  lanes: string[]
  calls: number
  refused: number
  active: number
  waiting: number
  /** One of `BREAKER_CODES`, or `SELF_ISOLATED`. */
  breaker: number
}

/** An event on one pod that the dashboards of all pods show. */
export interface PodNote {
  /** Number of the note, ascending by one. */
  number: number
  text: string
}

export interface PodStatus extends ProcessReading {
  version: string
  draining: boolean
  /** An operator has asked it to drain. */
  drainRequested: boolean
  pressure: number | undefined
  pressureBy: string | undefined
  store: StoreStatus | 'memory'
  guards: GuardStatus[]
  /** A few samples of the last minute. */
  notes: readonly PodNote[]
}

type GuardTuple = [string, string[], number, number, number, number, number]

/** Encoded as arrays, because field names would be most of the message. */
interface Packed {
  v: typeof STATUS_VERSION
  /** version, up ms, draining, drainRequested, pressure (-1: none), by, loop ms, busy, megabytes, store */
  pod: [string, number, number, number, number, string, number, number, number, string]
  guards: GuardTuple[]
  notes?: [number, string][]
}

export function packPodStatus(status: PodStatus): Packed {
  const {
    version,
    upMs,
    draining,
    drainRequested,
    pressure,
    pressureBy,
    loopMs,
    loopBusy,
    memoryMb,
    store,
  } = status
  let lanesLeft = MOST_LANES
  return {
    v: STATUS_VERSION,
    pod: [
      version,
      Math.round(upMs),
      draining ? 1 : 0,
      drainRequested ? 1 : 0,
      pressure === undefined ? -1 : rounded(pressure),
      pressureBy ?? '',
      rounded(loopMs),
      rounded(loopBusy),
      Math.round(memoryMb),
      store,
    ],
    guards: status.guards.slice(0, MOST_GUARDS).map((guard): GuardTuple => {
      const lanes = guard.lanes.filter(isShort).slice(0, lanesLeft)
      lanesLeft -= lanes.length
      const { name, calls, refused, active, waiting, breaker } = guard
      return [name.slice(0, LONGEST_NAME), lanes, calls, refused, active, waiting, breaker]
    }),
    ...(status.notes.length > 0 && {
      notes: status.notes
        .slice(-MOST_NOTES)
        .map(({ number, text }): [number, string] => [number, text.slice(0, LONGEST_NOTE)]),
    }),
  }
}

/** Undefined for a message of another release or of another program. */
export function readPodStatus(snapshot: unknown): PodStatus | undefined {
  const { v, pod, guards, notes } = (snapshot ?? {}) as Partial<Record<keyof Packed, unknown>>
  if (v !== STATUS_VERSION || !Array.isArray(pod) || !Array.isArray(guards)) return undefined
  const [version, upMs, draining, drainRequested, pressure, by, loopMs, loopBusy, memoryMb, store] =
    pod
  return {
    version: textOf(version),
    upMs: amount(upMs),
    draining: draining === 1,
    drainRequested: drainRequested === 1,
    pressure: typeof pressure === 'number' && pressure >= 0 ? pressure : undefined,
    pressureBy: textOf(by) || undefined,
    loopMs: amount(loopMs),
    loopBusy: amount(loopBusy),
    memoryMb: amount(memoryMb),
    store: STORES.find((each) => each === store) ?? 'memory',
    guards: guards.slice(0, MOST_GUARDS).flatMap(readGuard),
    notes: Array.isArray(notes) ? notes.slice(-MOST_NOTES).flatMap(readNote) : [],
  }
}

function readNote(packed: unknown): PodNote[] {
  if (!Array.isArray(packed)) return []
  const [number, text] = packed
  return Number.isSafeInteger(number) && typeof text === 'string' ? [{ number, text }] : []
}

function readGuard(packed: unknown): GuardStatus[] {
  if (!Array.isArray(packed)) return []
  const [name, lanes, calls, refused, active, waiting, breaker] = packed
  if (typeof name !== 'string' || name === '') return []
  return [
    {
      name: textOf(name),
      lanes: Array.isArray(lanes) ? lanes.filter((lane) => typeof lane === 'string') : [],
      calls: amount(calls),
      refused: amount(refused),
      active: amount(active),
      waiting: amount(waiting),
      breaker:
        Number.isInteger(breaker) && breaker >= -1 && breaker <= SELF_ISOLATED ? breaker : -1,
    },
  ]
}

const STORES = ['memory', 'starting', 'shared', 'unreachable', 'untrusted', 'off'] as const

function textOf(value: unknown): string {
  return typeof value === 'string' ? value.slice(0, LONGEST_NAME) : ''
}

function amount(value: unknown): number {
  return typeof value === 'number' && value >= 0 && value < Number.POSITIVE_INFINITY ? value : 0
}

function isShort(name: string): boolean {
  return name.length <= LONGEST_NAME
}

function rounded(value: number): number {
  return Math.round(value * 100) / 100
}
