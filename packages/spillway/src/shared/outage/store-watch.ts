/**
 * Watches the store for one guard of this pod. When it fails, no commands are sent: each mechanism
 * follows its outage rule. Pulses in the background notice when the store is back. They also show
 * whether it is still the same store (its epoch), and how many pods share the limits.
 */

import { counted, storeProblem } from '../../core/errors.js'
import { emit, listening } from '../../core/events.js'
import type { Random } from '../../core/random.js'
import type { Clock } from '../../core/time/clock.js'
import { untilPodPhaseMs } from '../../core/time/pod-phase.js'
import type { Fleet } from '../../store/fleet-share.js'
import type { PulsePart, PulseReply, PulseStore, Store } from '../../store/port.js'
import { StoreFailure } from '../../store/store-failure.js'
import { createPodId } from '../pod-id.js'
import { Backoff } from './backoff.js'
import { Distrust } from './distrust.js'
import { PodShares } from './pod-shares.js'
import { PulseLoop } from './pulse-loop.js'
import { isSharingOff } from './rules.js'
import { SILENT_MS, SilenceCheck } from './silence-check.js'
import { StoreEpoch } from './store-epoch.js'
import type { Spender, StoreSnapshot, StoreStatus } from './store-status.js'

export interface StoreWatchOptions {
  name: string
  pulses: PulseStore
  pod: string
  clock: Clock
  random: Random
  /** Number of pods until the store has replied. */
  expectedPods: number
  off: boolean
}

const BEAT_MS = 1_000
/**
 * How often a new pod tries to reach the store before its outage rules apply: for a second, or
 * longer while it is busy starting.
 */
const FIRST_PULSES = 100
const FIRST_PULSE_MS = 10

export class StoreWatch {
  status: StoreStatus
  /** Whether limits are counted in the store. Read for every round trip. */
  joined = false
  /** Whether the store replies. */
  reachable = true
  readonly #started: Promise<void>
  readonly #options: StoreWatchOptions
  readonly #backoff: Backoff
  readonly #distrust = new Distrust()
  readonly #epoch = new StoreEpoch()
  readonly #shares: PodShares
  readonly #loop: PulseLoop
  readonly #silence: SilenceCheck
  readonly #onChange = new Set<() => void>()
  /** Of all guards that use this watch; the last one represents them. */
  #spenders: Spender[] = []
  #spender: Spender | undefined
  #users = 1
  #beginning = true
  /** A call waits for the first reply. */
  #isAwaited = false
  #begun!: () => void
  #sinceMs: number
  #failedFirstPulses = 0
  #why: unknown
  #connected = false
  #refreshedMs = Number.NEGATIVE_INFINITY
  /** Store time minus our time, in microseconds. */
  #storeAheadUs: number
  #closed = false

  constructor(options: StoreWatchOptions) {
    const { clock, random, expectedPods, off } = options
    this.#options = options
    this.#backoff = new Backoff(clock, random)
    this.#shares = new PodShares(expectedPods)
    this.#loop = new PulseLoop({
      clock,
      round: () => this.#runRound(),
      pauseMs: () => this.#pauseMs(),
      // The watch of an idle guard does not keep the process alive.
      keepsAlive: () => this.status === 'starting' && this.#isAwaited,
    })
    this.#silence = new SilenceCheck(clock, () => this.#checkSilence())
    this.#sinceMs = clock.now()
    this.#storeAheadUs = clock.wallMs() * 1_000 - this.#sinceMs * 1_000
    this.#started = new Promise((resolve) => {
      this.#begun = resolve
    })
    this.status = off ? 'off' : 'starting'
    if (off) {
      this.reachable = false
      this.#begun()
    }
  }

  get fleet(): Fleet {
    return this.#shares.fleet
  }

  /** Pods that have not reported; their shares must not be used. */
  get missing(): number {
    return this.#shares.missing
  }

  /** For a guard that replaces another: the last one to close it stops it. */
  share(): this {
    this.#users++
    return this
  }

  /**
   * Resolves when it is known whether the store is reachable. A call waits for this, so it keeps
   * the process alive.
   */
  whenStarted(): Promise<void> {
    this.#isAwaited = true
    this.#loop.ref()
    return this.#started
  }

  /** Why this pod decides without the store, for refusals. */
  get problem(): string {
    if (this.status === 'off') return 'SPILLWAY_SHARED is off'
    if (this.status === 'untrusted') return 'the store has lost its data'
    return `the store is unreachable: ${storeProblem(this.#why ?? 'it was not reached before close()')}`
  }

  /** Called once by each guard, when everything that depends on the watch exists. */
  start(spender: Spender | undefined): void {
    if (spender !== undefined) {
      this.#spenders.push(spender)
      this.#spender = spender
    }
    if (!this.#beginning) return this.pulseNow()
    this.#beginning = false
    if (this.status !== 'off') this.#loop.next(0)
  }

  /** There is a new connection, perhaps to another server. */
  pulseNow(): void {
    if (this.reachable && this.status !== 'starting' && !this.#loop.busy) this.#loop.next(0)
  }

  /**
   * Calls `listener` when `reachable` or `joined` has changed, until the returned function is
   * called.
   */
  onChange(listener: () => void): () => void {
    this.#onChange.add(listener)
    return () => this.#onChange.delete(listener)
  }

  /** The store's time, as this pod estimates it. */
  nowUs(): number {
    return Math.floor(this.#options.clock.now() * 1_000 + this.#storeAheadUs)
  }

  /** A reply arrived. `nowUs` is the store's time in it. */
  replied(nowUs: number): void {
    const nowMs = this.#options.clock.now()
    this.#distrust.replied(nowMs)
    this.#storeAheadUs = nowUs - nowMs * 1_000
  }

  /** A reply without the store's time arrived. */
  alive(): void {
    this.#distrust.replied(this.#options.clock.now())
  }

  /** Permits arrived after `tookMs`. A store that is too slow for permits counts as unreachable. */
  permitted(tookMs: number): void {
    const late = tookMs > (this.#spender?.usableMs ?? Number.POSITIVE_INFINITY)
    if (!this.#distrust.permitted(late, this.#options.clock.now()) || !this.reachable) return
    this.#distrust.forgetLate()
    this.#becomeUnreachable(
      new Error(
        `the store took ${Math.round(tookMs)} ms to answer; raise jitterMs if that is usual`,
      ),
    )
  }

  failed(error: unknown): void {
    if (!this.reachable || this.status === 'starting') return
    if (this.#distrust.failed(error, this.#options.clock.now())) this.#becomeUnreachable(error)
  }

  /**
   * A command is sent. While it is in flight and no reply arrives, pulses are sent: if those fail
   * as well, it is an outage.
   */
  commandSent(): void {
    this.#silence.begin()
  }

  /** The command has ended, with or without a reply. */
  commandEnded(): void {
    this.#silence.end()
  }

  snapshot(): StoreSnapshot {
    const { status, fleet, missing } = this
    const { clock, expectedPods } = this.#options
    const alone = !this.#connected && status !== 'starting'
    return {
      status,
      forMs: clock.now() - this.#sinceMs,
      why: this.#why === undefined ? undefined : messageOf(this.#why),
      pods: fleet.pods,
      missing,
      warning: alone
        ? `the store has never answered: this pod assumes ${counted(expectedPods, 'pods')}`
        : undefined,
    }
  }

  async close(spender?: Spender): Promise<void> {
    if (--this.#users > 0) return this.#withdraw(spender)
    this.#closed = true
    const ended = this.#loop.close()
    this.#silence.close()
    // Calls that wait for the first reply continue.
    if (this.status === 'starting') this.#change('unreachable')
    await ended
    if (!this.reachable || this.#spender === undefined || !this.#connected) return
    await this.#pulse('gone').catch(() => {})
  }

  /** This spender has ended; others may remain. */
  async #withdraw(spender: Spender | undefined): Promise<void> {
    if (spender === undefined) return
    this.#spenders = this.#spenders.filter((each) => each !== spender)
    this.#spender = this.#spenders.at(-1)
    if (this.#spender !== undefined || !this.reachable || !this.#connected) return
    await this.#pulse('gone').catch(() => {})
  }

  /** Sends a pulse if there was no reply for a while; returns whether to check again. */
  #checkSilence(): boolean {
    if (!this.reachable || this.#closed) return false
    const silentMs = this.#distrust.silentMs(this.#options.clock.now())
    if (silentMs >= SILENT_MS && !this.#loop.busy) this.#loop.next(0)
    return true
  }

  #pauseMs(): number {
    if (this.status === 'starting') return FIRST_PULSE_MS
    if (!this.reachable) return this.#backoff.nextMs()
    const { clock, pod } = this.#options
    const nowMs = clock.now()
    const beatMs = untilPodPhaseMs(pod, BEAT_MS, nowMs)
    if (this.status !== 'untrusted') return beatMs
    return Math.min(beatMs, Math.max(1, this.#epoch.distrustMs(nowMs)))
  }

  async #runRound(): Promise<void> {
    const sentMs = this.#options.clock.now()
    try {
      const reply = await this.#pulse(this.#part())
      this.#checkLateness(sentMs)
      await this.#onPulse(reply)
      if (this.joined) this.#refresh()
    } catch (error) {
      this.#onSilence(error)
    }
  }

  /**
   * Sends a command for each lane. Not repeated by the extra pulses to a slow store, which would
   * make it slower.
   */
  #refresh(): void {
    const nowMs = this.#options.clock.now()
    if (nowMs - this.#refreshedMs < BEAT_MS / 2) return
    this.#refreshedMs = nowMs
    this.#spender?.refresh()
  }

  #onSilence(error: unknown): void {
    if (this.status !== 'starting') {
      this.failed(error)
      if (!this.reachable) this.#why = error
      return
    }
    // A connection that is being opened needs a moment; one that was refused does not.
    const isConnecting =
      error instanceof StoreFailure && error.kind === 'not-sent' && error.cause === undefined
    if (!isConnecting || ++this.#failedFirstPulses >= FIRST_PULSES) this.#becomeUnreachable(error)
  }

  #part(): PulsePart {
    if (this.#spender === undefined) return 'guest'
    return this.joined || this.status === 'starting' ? 'joined' : 'untrusted'
  }

  async #pulse(part: PulsePart): Promise<PulseReply> {
    const { pulses, name, pod, random } = this.#options
    return pulses.pulse({
      guard: name,
      pod,
      part,
      epoch: this.#epoch.epoch,
      count: this.#epoch.count,
      fresh: createPodId('epoch', random),
    })
  }

  /** A store is back only if it replies fast enough to be used. */
  #checkLateness(sentMs: number): void {
    const tookMs = this.#options.clock.now() - sentMs
    if (this.reachable || tookMs <= (this.#spender?.usableMs ?? tookMs)) return
    throw new StoreFailure('ambiguous', `it took ${Math.round(tookMs)} ms to answer`)
  }

  async #onPulse(reply: PulseReply): Promise<void> {
    this.replied(reply.nowUs)
    this.#connected = true
    if (this.status === 'unreachable') this.#shares.returned(this.#options.clock.now())
    this.#take(reply)
    if (this.#spender === undefined) return this.#change('shared')
    if (this.#isDistrusted) return this.#change('untrusted')
    if (this.status === 'starting' || this.joined) return this.#change('shared')
    // The store gets all reports before its replies are used.
    await this.#spender.report()
    this.#take(await this.#pulse('joined'))
    this.#change(this.#isDistrusted ? 'untrusted' : 'shared')
  }

  get #isDistrusted(): boolean {
    return this.#epoch.distrustMs(this.#options.clock.now()) > 0
  }

  /** Takes over the epoch and the number of pods. */
  #take(reply: PulseReply): void {
    const nowMs = this.#options.clock.now()
    const spender = this.#spender
    if (this.#epoch.isOther(reply)) spender?.forgotten()
    if (spender === undefined) return
    if (this.#epoch.hasLost(reply, spender.countsUntilUs(reply.lostUs), nowMs)) {
      this.#why = new Error('the store has lost its data')
    }
    this.#shares.count(reply, nowMs)
  }

  #becomeUnreachable(error: unknown): void {
    this.#why = error
    this.#backoff.lost()
    this.#shares.lost(this.#connected)
    this.#change('unreachable')
    this.#loop.next(this.#backoff.nextMs())
  }

  #change(status: StoreStatus): void {
    if (status === this.status) return
    const before = this.status
    const { clock, name } = this.#options
    const nowMs = clock.now()
    const forMs = nowMs - this.#sinceMs
    this.status = status
    this.#sinceMs = nowMs
    const wasJoined = this.joined
    this.joined = status === 'shared'
    this.reachable = status === 'shared' || status === 'untrusted'
    if (before === 'unreachable') this.#backoff.found()
    if (status === 'shared') this.#why = undefined
    if (!this.joined && (wasJoined || before === 'starting')) this.#wakeAll()
    if (before === 'starting') this.#begun()
    if (this.joined && !wasJoined && before !== 'starting') {
      this.#spender?.returned()
      this.#wakeAll()
    }
    for (const notify of this.#onChange) notify()
    if (!listening() || this.#closed) return
    if (status !== 'shared') {
      emit({ type: 'store.degraded', name, status, why: messageOf(this.#why) })
    } else if (before !== 'starting') emit({ type: 'store.restored', name, forMs })
  }

  #wakeAll(): void {
    for (const each of this.#spenders) each.wake()
  }
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}

/** Undefined for a memory store, which is always reachable. */
export function watchStore(
  store: Store,
  { name, pod, clock, random, expectedPods }: Omit<StoreWatchOptions, 'pulses' | 'off'>,
): StoreWatch | undefined {
  if (!store.remote) return undefined
  const { pulses } = store
  return new StoreWatch({ name, pulses, pod, clock, random, expectedPods, off: isSharingOff() })
}
