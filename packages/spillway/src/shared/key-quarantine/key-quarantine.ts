/**
 * Keeps the fleet from using a configured API key that the vendor does not accept: its quota is exhausted, or it was
 * called invalid several times in a row. Each key is a lane of a shared circuit breaker, so every pod refuses from
 * memory, changes are pushed, one leased probe of the whole fleet tests the key after its reset time, and each pod
 * decides alone while the store is unreachable. An operator's quarantine is an isolation of the lane of the key's
 * name; it holds whatever the secret is.
 */

import type { SpillwayError } from '../../core/errors.js'
import { emit, listening } from '../../core/events.js'
import { LONGEST_RESET_MS } from '../../core/failures/error-kind.js'
import type { Clock, Timer } from '../../core/time/clock.js'
import type { Store } from '../../store/port.js'
import type { BreakerChange, BreakerPermit } from '../circuit-breaker/api.js'
import { BreakerLanes } from '../circuit-breaker/breaker-lanes.js'
import { isBreakerPermit } from '../circuit-breaker/lane/breaker-permit.js'
import { LaneRegistry } from '../lanes/lane-registry.js'
import type { StoreWatch } from '../outage/store-watch.js'
import { type KeyId, keyNameIn, keysGroup } from './key-id.js'
import { dropNote, postNote, type QuarantineReason, readNotes } from './key-notes.js'
import { KEY_POLICY, UNKNOWN_RESET_MS } from './policy.js'
import { quarantineError } from './refusal.js'

/** Verdict on a key, from the vendor's answer to a request with it. */
export type KeyAnswer =
  /** The vendor accepted the key, with any answer. */
  | { readonly kind: 'accepted' }
  /** `resetMs`: time until the quota is renewed, if the answer contains it. */
  | { readonly kind: 'quota-exhausted'; readonly resetMs: number | undefined }
  | { readonly kind: 'invalid-key' }
  /** Nothing: a server error, a broken connection, a request that was not sent. */
  | { readonly kind: 'unknown' }

/** Allows one request with a key. It is returned with the answer, exactly once. */
export interface KeyPermit {
  readonly key: KeyId
  /** Set if the request tests a quarantined key. */
  readonly probe: BreakerPermit | undefined
  /** Changes of the key's state that this pod knew when the request began. */
  readonly changes: number
}

type Entry = KeyPermit | SpillwayError

/** State of one key, as this pod knows it. */
export interface KeyState {
  readonly key: string
  readonly state: 'usable' | 'quarantined' | 'probing'
  readonly reason: QuarantineReason | undefined
  /** Milliseconds until a probe may test it, or until the operator's quarantine ends. */
  readonly untilMs: number | undefined
}

export interface KeyQuarantineOptions {
  readonly vendor: string
  readonly store: Store
  readonly pod: string
  readonly clock: Clock
  /** Watches a remote store. The quarantine closes it. */
  readonly watch: StoreWatch | undefined
}

/** State of a lane that is not in its breaker. */
interface LaneRecord {
  changes: number
  /** Of the last bad answer, or read from the store. */
  reason: QuarantineReason | undefined
  /** When this pod last got a bad answer. */
  badMs: number
  /** When it was last checked whether bad answers wait to be forgotten. */
  checkedMs: number
  /** This pod has reported a bad answer since the last good one. */
  hadBadAnswer: boolean
}

/** Successes matter only after bad answers. Other pods' bad answers are known after a second at the latest. */
const CHECK_EVERY_MS = 250
/** A change this soon after a bad answer of this pod is probably due to it. */
const OWN_CHANGE_MS = 5_000
/** The pod that quarantines a key writes the reason a moment after the change is published. */
const READ_REASON_MS = 200

export class KeyQuarantine {
  readonly #options: KeyQuarantineOptions
  readonly #breakers: BreakerLanes
  readonly #lanes: LaneRegistry
  readonly #records = new Map<string, LaneRecord>()
  #keys: readonly KeyId[] = []
  #reading: Timer | undefined
  #closed = false

  constructor(options: KeyQuarantineOptions) {
    this.#options = options
    const { vendor, store, pod, clock, watch } = options
    const name = keysGroup(vendor)
    this.#lanes = new LaneRegistry({ name, clock })
    this.#breakers = new BreakerLanes({
      ...{ name, store, pod, clock, watch },
      policy: KEY_POLICY,
      lanes: this.#lanes,
      silent: true,
    })
    this.#breakers.onChange((change) => this.#changed(change))
  }

  /** The keys of the configuration in force. Their state is read from the store now. */
  use(keys: readonly KeyId[]): void {
    this.#keys = keys
    const lanes = keys.flatMap(({ name, id }) => [name, id])
    this.#lanes.nameLanes(lanes)
    const used = new Set(lanes)
    for (const lane of this.#records.keys()) if (!used.has(lane)) this.#records.delete(lane)
    for (const lane of lanes) this.#breakers.isClear(lane)
    this.#readReasons()
  }

  /** A permit, or the error to refuse with; a promise if the state is not known, or the key has to be probed. */
  enter(key: KeyId): Entry | Promise<Entry> {
    const isClear = this.#breakers.isClear(key.id) && this.#breakers.isClear(key.name)
    return isClear ? this.#permit(key) : (this.refusal(key) ?? this.#enterAsync(key))
  }

  /** Why a request with this key would be refused, as far as this pod knows. Takes nothing. */
  refusal(key: KeyId): SpillwayError | undefined {
    const error = this.#breakers.knownRefusal(key.name) ?? this.#breakers.knownRefusal(key.id)
    return error && this.#explained(key, error)
  }

  /** The vendor has answered the request of this permit. */
  answered({ key, probe, changes }: KeyPermit, answer: KeyAnswer): void {
    const record = this.#of(key.id)
    const isStale = probe === undefined && changes !== record.changes
    switch (answer.kind) {
      case 'accepted':
        if (probe !== undefined) this.#breakers.exit(probe, 'success')
        else this.#accepted(key, record)
        break
      case 'unknown':
        if (probe !== undefined) this.#breakers.exit(probe, 'ignored')
        break
      case 'invalid-key':
        this.#noteBadAnswer(record, 'invalid-key')
        record.hadBadAnswer = true
        if (probe !== undefined) this.#breakers.exit(probe, 'failure')
        else this.#breakers.record(key.id, 'failure')
        break
      case 'quota-exhausted':
        // A request that started before the last change does not describe the current state.
        if (isStale) break
        this.#noteBadAnswer(record, 'quota-exhausted')
        void this.#exhausted(key, probe, answer.resetMs ?? UNKNOWN_RESET_MS)
    }
  }

  /** State of all keys in use. */
  states(): KeyState[] {
    return this.#keys.map((key) => this.#stateOf(key))
  }

  async close(): Promise<void> {
    this.#closed = true
    this.#reading?.cancel()
    await this.#breakers.close()
    await this.#options.watch?.close()
  }

  async #enterAsync(key: KeyId): Promise<Entry> {
    const isolation = await this.#breakers.enter(key.name)
    if (!isBreakerPermit(isolation)) return this.#explained(key, isolation)
    this.#breakers.exit(isolation, 'ignored')
    const entry = await this.#breakers.enter(key.id)
    if (!isBreakerPermit(entry)) return this.#explained(key, entry)
    if (entry.probe) return this.#permit(key, entry)
    this.#breakers.exit(entry, 'ignored')
    return this.#permit(key)
  }

  #permit(key: KeyId, probe?: BreakerPermit): KeyPermit {
    return { key, probe, changes: this.#of(key.id).changes }
  }

  #noteBadAnswer(record: LaneRecord, reason: QuarantineReason): void {
    record.reason = reason
    record.badMs = this.#options.clock.now()
  }

  /** A success resets the count of consecutive bad answers. */
  #accepted({ id }: KeyId, record: LaneRecord): void {
    const nowMs = this.#options.clock.now()
    if (!record.hadBadAnswer && nowMs - record.checkedMs < CHECK_EVERY_MS) return
    record.checkedMs = nowMs
    if (!record.hadBadAnswer && this.#breakers.snapshot(id).consecutiveFailures === 0) return
    record.hadBadAnswer = false
    record.reason = undefined
    this.#breakers.record(id, 'success')
  }

  async #exhausted(key: KeyId, probe: BreakerPermit | undefined, resetMs: number): Promise<void> {
    const forUs = Math.ceil(Math.min(Math.max(1, resetMs), LONGEST_RESET_MS) * 1_000)
    try {
      await this.#breakers.tripFound(key.id, forUs)
      if (probe !== undefined) this.#breakers.exit(probe, 'ignored')
    } catch {
      // The store did not answer: the next request with this key finds the reason again.
      if (probe !== undefined) this.#breakers.exit(probe, 'failure')
    }
  }

  /** A lane has changed, in this pod or another. */
  #changed({ lane, to }: BreakerChange): void {
    const record = this.#of(lane)
    record.changes++
    if (to === 'closed') this.#released(lane, record)
    else if (to !== 'half-open') this.#quarantined(lane, record, to === 'isolated')
  }

  #released(lane: string, record: LaneRecord): void {
    const { vendor, store } = this.#options
    record.hadBadAnswer = false
    record.reason = undefined
    if (listening()) emit({ type: 'key.released', name: vendor, key: keyNameIn(lane) })
    void dropNote(store, vendor, lane).catch(() => {})
  }

  #quarantined(lane: string, record: LaneRecord, isByOperator: boolean): void {
    const { vendor, store, clock } = this.#options
    const isOwn = !isByOperator && clock.now() - record.badMs < OWN_CHANGE_MS
    if (!isOwn) record.reason = isByOperator ? 'operator' : undefined
    const { reason } = record
    const forMs = this.#breakers.snapshot(lane).untilMs ?? 0
    const key = keyNameIn(lane)
    if (listening()) emit({ type: 'key.quarantined', name: vendor, key, reason, forMs })
    if (reason === undefined) this.#readReasons()
    if (!isOwn || reason === undefined) return
    const forUs = Math.ceil(forMs * 1_000)
    void postNote(store, vendor, { id: lane, reason, forUs }).catch(() => {})
  }

  /** Another pod knows why. */
  #readReasons(): void {
    if (this.#reading !== undefined || this.#closed) return
    const { clock } = this.#options
    this.#reading = clock.schedule(READ_REASON_MS, () => {
      this.#reading = undefined
      void this.#readNotes().catch(() => {})
    })
    this.#reading.unref()
  }

  /** Takes over the reasons, and drops notes about secrets that were replaced. */
  async #readNotes(): Promise<void> {
    const { vendor, store } = this.#options
    const used = new Set(this.#keys.flatMap(({ name, id }) => [name, id]))
    const names = new Set(this.#keys.map(({ name }) => name))
    for (const { id, key, reason } of await readNotes(store, vendor)) {
      if (used.has(id)) this.#of(id).reason ??= reason
      else if (names.has(key)) await dropNote(store, vendor, id)
    }
  }

  #stateOf(key: KeyId): KeyState {
    const isolation = this.#breakers.snapshot(key.name)
    const own = this.#breakers.snapshot(key.id)
    const { state, untilMs } = isolation.state === 'closed' ? own : isolation
    const reason = isolation.state === 'closed' ? this.#of(key.id).reason : 'operator'
    if (state === 'closed') {
      return { key: key.name, state: 'usable', reason: undefined, untilMs: undefined }
    }
    const isProbing = state === 'half-open'
    return { key: key.name, state: isProbing ? 'probing' : 'quarantined', reason, untilMs }
  }

  #explained(key: KeyId, error: SpillwayError): SpillwayError {
    if (error.code !== 'CIRCUIT_OPEN') return error
    const isByOperator = error.details.lane === key.name
    const reason = isByOperator ? 'operator' : this.#of(key.id).reason
    return quarantineError(this.#options.vendor, key.name, reason, error)
  }

  #of(lane: string): LaneRecord {
    const record = this.#records.get(lane)
    if (record !== undefined) return record
    const fresh = {
      changes: 0,
      reason: undefined,
      badMs: Number.NEGATIVE_INFINITY,
      checkedMs: Number.NEGATIVE_INFINITY,
      hadBadAnswer: false,
    }
    this.#records.set(lane, fresh)
    return fresh
  }
}
