/**
 * The live pods of a fleet. Each pod sends heartbeats with a snapshot of itself. A pod that dies
 * disappears after a while, one that leaves disappears at once.
 */

import { callSafely } from '../core/events.js'
import {
  type Duration,
  duration,
  func,
  object,
  optional,
  text,
  validate,
} from '../core/options/checks.js'
import type { Random } from '../core/random.js'
import { swallow } from '../core/thenable.js'
import type { Clock, Timer } from '../core/time/clock.js'
import { clockOption, randomOption } from '../core/time/clock-options.js'
import { untilPodPhaseMs } from '../core/time/pod-phase.js'
import type { Store } from '../store/port.js'
import { createPodId } from './pod-id.js'
import { readStore } from './store-option.js'

/** Options of `createMembership()`. */
export interface MembershipOptions {
  /** The store that the pods share. */
  store: Store
  /** Pods with the same name belong together. Default: `fleet`. */
  name?: string
  /** Name of this pod. A random part is added, so that a restarted pod has another name. Default: `pod`. */
  pod?: string
  /** Interval of heartbeats. Range: from 10 ms. Default: 1 second. */
  heartbeatMs?: Duration
  /**
   * A pod without a heartbeat for this long is no longer a member. Range: from 10 ms. Default: 5 heartbeats.
   */
  lifeMs?: Duration
  /** State of this pod for the other pods: any JSON value. Default: none. */
  snapshot?: () => unknown
  /** Called once with each command for this pod, within a heartbeat. Default: commands are ignored. */
  onCommand?: (command: string) => unknown
  /** The clock to read and to set timers with. Default: the system clock. */
  clock?: Clock
  /** Source of random numbers from 0 to 1. Default: `Math.random`. */
  random?: Random
}

/** One pod of the fleet. */
export interface Member {
  /** Identifies the pod. */
  pod: string
  /** Its last snapshot. */
  snapshot: unknown
  /** Milliseconds since then. */
  ageMs: number
}

/** The pods of a fleet. Created by `createMembership()`. */
export interface Membership {
  /** Name of this pod, with the random part. */
  readonly pod: string
  /** Live pods at the last heartbeat, including this one. */
  readonly live: number
  /** All live pods. */
  members(): Promise<Member[]>
  /** Sends a command to a pod. Returns whether there is such a pod. */
  sendCommand(pod: string, command: string): Promise<boolean>
  /** Leaves; the other pods see it at once. */
  close(): Promise<void>
}

/** A pod that misses this many heartbeats in a row is removed. */
export const BEATS_IN_A_LIFE = 5

/** A pod without a heartbeat for this long does not get the command. */
const COMMAND_US = 30_000_000
const MAX_COMMAND_LENGTH = 1_000
const FLEET = 'fleet'

const fields = {
  store: readStore,
  name: optional(text(), FLEET),
  pod: optional(text(), 'pod'),
  heartbeatMs: optional(duration({ min: 10 }), 1_000),
  lifeMs: optional(duration({ min: 10 })),
  snapshot: optional(func<() => unknown>(), () => undefined),
  onCommand: optional(func<(command: string) => unknown>(), () => undefined),
  clock: clockOption,
  random: randomOption,
}
const readOptions = object(fields, { onAsk: 'onCommand' })

/** The live pods of this name; the caller need not be one of them. */
export async function listMembers(store: Store, name = FLEET): Promise<Member[]> {
  const records = await store.pods.list({ group: groupOf(name) })
  return records.map(({ pod, snapshot, ageUs }) => ({
    pod,
    snapshot: parsed(snapshot),
    ageMs: ageUs / 1_000,
  }))
}

/** A guard may have the same name, and its pods are a group as well. */
function groupOf(name: string): string {
  return `pods:${name}`
}

/**
 * Creates the list of pods that share a store.
 *
 * @example
 * const membership = createMembership({ store, snapshot: () => ({ version: '1.2.3' }) })
 * const pods = await membership.members()
 */
export function createMembership(options: MembershipOptions): Membership {
  return new StoreMembership(validate('membership', options, readOptions))
}

class StoreMembership implements Membership {
  readonly pod: string
  live = 1
  readonly #options: ReturnType<typeof readOptions>
  readonly #group: string
  #timer: Timer | undefined
  #beating: Promise<void>
  #closed = false
  /** The last command, which is repeated until it expires. */
  #lastCommand = ''

  constructor(options: ReturnType<typeof readOptions>) {
    this.#options = options
    this.#group = groupOf(options.name)
    this.pod = createPodId(options.pod, options.random)
    this.#beating = this.#beat()
  }

  members(): Promise<Member[]> {
    return listMembers(this.#options.store, this.#options.name)
  }

  async sendCommand(pod: string, command: string): Promise<boolean> {
    const checked = validate('command', command, text()).slice(0, MAX_COMMAND_LENGTH)
    return this.#options.store.pods.sendCommand({
      group: this.#group,
      pod,
      forUs: COMMAND_US,
      command: checked,
    })
  }

  /** The name of `sendCommand` before the first release. Not part of the interface. */
  ask(): never {
    throw new TypeError('membership.ask() was renamed: use membership.sendCommand()')
  }

  async close(): Promise<void> {
    this.#closed = true
    this.#timer?.cancel()
    // A heartbeat that arrives after leaving would add this pod again.
    await this.#beating
    try {
      await this.#options.store.pods.leave({ group: this.#group, pod: this.pod })
    } catch {
      // The entry expires.
    }
  }

  async #beat(): Promise<void> {
    const { name, store, heartbeatMs, lifeMs = heartbeatMs * BEATS_IN_A_LIFE } = this.#options
    const snapshot = callSafely(name, 'snapshot', () => this.#describe(), '')
    const lifeUs = Math.ceil(lifeMs * 1_000)
    const beat = { group: this.#group, pod: this.pod, lifeUs, snapshot }
    try {
      const { live, command } = await store.pods.beat(beat)
      this.live = live
      this.#onCommand(command)
    } catch {
      // The next heartbeat shows whether the store is back.
    }
    if (this.#closed) return
    const { clock } = this.#options
    this.#timer = clock.schedule(untilPodPhaseMs(this.pod, heartbeatMs, clock.now()), () => {
      this.#beating = this.#beat()
    })
    this.#timer.unref()
  }

  #onCommand(command: string): void {
    if (command === this.#lastCommand || this.#closed) return
    this.#lastCommand = command
    const { name, onCommand } = this.#options
    if (command !== '') callSafely(name, 'onCommand', () => swallow(onCommand(command)), undefined)
  }

  #describe(): string {
    return JSON.stringify(this.#options.snapshot()) ?? ''
  }
}

/** Another version may use another format; that must not hide the other pods. */
function parsed(snapshot: string): unknown {
  try {
    return snapshot === '' ? undefined : JSON.parse(snapshot)
  } catch {
    return undefined
  }
}
