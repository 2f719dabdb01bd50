/**
 * Watches over the store for one guard of this pod. When it fails, nobody asks it any more: each
 * mechanism goes by its outage rule, and one pulse now and then finds out, in the background, when it
 * is back. Pulses also tell whether it is still the store that was known (its epoch), and among how
 * many pods limits are shared.
 */

import { emit, listening } from '../../core/events.js'
import type { Random } from '../../core/random.js'
import type { Clock, Timer } from '../../core/time/clock.js'
import { untilBeatMs } from '../../core/time/pod-phase.js'
import type { Fleet } from '../../store/local-spend.js'
import type { PulsePart, PulseReply, PulseStore } from '../../store/port.js'
import { StoreFailure } from '../../store/store-failure.js'
import { createPodId } from '../pod-id.js'
import { Backoff } from './backoff.js'
import { Doubts } from './distrust.js'
import { PodShares } from './pod-shares.js'
import { StoreEpoch } from './store-epoch.js'

/**
 * - `starting`: not connected yet, and not long ago;
 * - `shared`: all is as it should be;
 * - `away`: the store does not answer;
 * - `apart`: it answers, but has lost what it knew: limits are not shared yet;
 * - `off`: `SPILLWAY_SHARED=off`.
 */
export type StoreStatus = 'starting' | 'shared' | 'away' | 'apart' | 'off'

/** Who spends, and has to be told of it: the book of a guard's limits. */
export interface Spender {
  /** How long what was spent counts. */
  readonly windowMs: number
  /** An answer that takes longer is of no use. */
  readonly usableMs: number
  /** What was heard holds no longer: whoever waits asks again. */
  wake(): void
  /** Another store: what the old one was told is lost. */
  forgotten(): void
  /** Tells the store what was spent without it; rejects if it cannot. */
  tell(): Promise<void>
  /** Looks what is left, now and then. */
  refresh(): void
  /** From now on the store is asked again. */
  returned(): void
}

export interface StoreWatchOptions {
  name: string
  pulses: PulseStore
  pod: string
  clock: Clock
  random: Random
  /** How many pods there are, as long as nobody has said. */
  expectedPods: number
  off: boolean
}

export interface StoreSnapshot {
  status: StoreStatus
  /** Milliseconds since it became so. */
  forMs: number
  /** What went wrong, if something did. */
  why: string | undefined
  /** Among how many pods limits are shared. */
  pods: number
  /** Of these, how many are not heard of: their shares are kept for them. */
  missing: number
  /** What an operator should know. */
  warning: string | undefined
}

const BEAT_MS = 1_000
/**
 * So often a new pod looks for its first connection before it goes by its outage rules: for a second,
 * or longer where it is busy starting.
 */
const FIRST_LOOKS = 100
const FIRST_LOOK_MS = 10
/** After so long without an answer one more is asked for. */
const DOUBT_MS = 40

export class StoreWatch {
  status: StoreStatus
  /** Limits go through the store. Read for every trip. */
  joined = false
  /** The store answers. */
  reachable = true
  readonly #started: Promise<void>
  readonly #options: StoreWatchOptions
  readonly #backoff: Backoff
  readonly #doubts = new Doubts()
  readonly #epoch = new StoreEpoch()
  readonly #shares: PodShares
  readonly #onChange = new Set<() => void>()
  /** Of all guards that go by this; the last who came speaks for them. */
  #spenders: Spender[] = []
  #spender: Spender | undefined
  #users = 1
  #beginning = true
  /** A call waits for the first answer. */
  #awaited = false
  #begun!: () => void
  #sinceMs: number
  #looks = 0
  #why: unknown
  #connected = false
  /** Commands that mechanisms wait for. */
  #underWay = 0
  #doubt: Timer | undefined
  #refreshedMs = Number.NEGATIVE_INFINITY
  /** Store time less ours, in microseconds. */
  #aheadUs: number
  #timer: Timer | undefined
  #round: Promise<void> | undefined
  #closed = false

  constructor(options: StoreWatchOptions) {
    const { clock, random, expectedPods, off } = options
    this.#options = options
    this.#backoff = new Backoff(clock, random)
    this.#shares = new PodShares(expectedPods)
    this.#sinceMs = clock.now()
    this.#aheadUs = clock.wallMs() * 1_000 - this.#sinceMs * 1_000
    this.#started = new Promise((resolve) => {
      this.#begun = resolve
    })
    this.status = off ? 'off' : 'starting'
    if (off) {
      this.reachable = false
      this.#begun()
    }
  }

  /** Among whom limits are shared. */
  get fleet(): Fleet {
    return this.#shares.fleet
  }

  /** Pods whose shares have to be left alone. */
  get missing(): number {
    return this.#shares.missing
  }

  /** For a guard that takes the place of another: whoever closes it last closes it. */
  share(): this {
    this.#users++
    return this
  }

  /** Resolves when it is known whether there is a store. A call waits for this, so the process stays alive. */
  whenStarted(): Promise<void> {
    this.#awaited = true
    this.#timer?.ref()
    return this.#started
  }

  /** When everything that depends on it is there; once for each guard that goes by it. */
  start(spender: Spender | undefined): void {
    if (spender !== undefined) {
      this.#spenders.push(spender)
      this.#spender = spender
    }
    if (!this.#beginning) return this.lookNow()
    this.#beginning = false
    if (this.status !== 'off') this.#next(0)
  }

  /** A connection was made anew: perhaps to another server than before. */
  lookNow(): void {
    if (this.reachable && this.status !== 'starting' && this.#round === undefined) this.#next(0)
  }

  /** Tells when `reachable` or `joined` have changed, until the returned function is called. */
  onChange(listener: () => void): () => void {
    this.#onChange.add(listener)
    return () => this.#onChange.delete(listener)
  }

  /** The store's time, as far as this pod can tell. */
  nowUs(): number {
    return Math.floor(this.#options.clock.now() * 1_000 + this.#aheadUs)
  }

  /** An answer has come. `nowUs`: the store's time in it. */
  heard(nowUs: number): void {
    const nowMs = this.#options.clock.now()
    this.#doubts.heard(nowMs)
    this.#aheadUs = nowUs - nowMs * 1_000
  }

  /** An answer has come. */
  alive(): void {
    this.#doubts.heard(this.#options.clock.now())
  }

  /** Whether permits came in time to be used. A store that is too slow for that is as good as none. */
  permitted(tookMs: number): void {
    const late = tookMs > (this.#spender?.usableMs ?? Number.POSITIVE_INFINITY)
    if (!this.#doubts.permitted(late, this.#options.clock.now()) || !this.reachable) return
    this.#doubts.forgetLate()
    this.#lose(
      new Error(`it takes ${Math.round(tookMs)} ms to answer; raise jitterMs if that is usual`),
    )
  }

  /** A command has failed. */
  failed(error: unknown): void {
    if (!this.reachable || this.status === 'starting') return
    if (this.#doubts.failed(error, this.#options.clock.now())) this.#lose(error)
  }

  /** A command leaves. While it is under way and nothing is heard, pulses follow: all cannot be bad luck. */
  asked(): void {
    this.#underWay++
    if (this.#doubt !== undefined) return
    this.#doubt = this.#options.clock.schedule(DOUBT_MS, () => {
      this.#doubt = undefined
      if (!this.reachable || this.#closed || this.#underWay === 0) return
      const silentMs = this.#doubts.silentMs(this.#options.clock.now())
      if (silentMs >= DOUBT_MS && this.#round === undefined) this.#next(0)
      this.#underWay--
      this.asked()
    })
    this.#doubt.unref()
  }

  /** It has come back, or not. */
  over(): void {
    this.#underWay--
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
      warning: alone ? `never heard of the store: counts on ${expectedPods} pods` : undefined,
    }
  }

  async close(spender?: Spender): Promise<void> {
    if (--this.#users > 0) return this.#withdraw(spender)
    this.#closed = true
    this.#timer?.cancel()
    this.#doubt?.cancel()
    // Whoever waits to hear whether there is one hears that nobody looks any more.
    if (this.status === 'starting') this.#change('away')
    await this.#round
    if (!this.reachable || this.#spender === undefined || !this.#connected) return
    await this.#pulse('gone').catch(() => {})
  }

  /** It spends nothing any more; others may. */
  async #withdraw(spender: Spender | undefined): Promise<void> {
    if (spender === undefined) return
    this.#spenders = this.#spenders.filter((each) => each !== spender)
    this.#spender = this.#spenders.at(-1)
    if (this.#spender !== undefined || !this.reachable || !this.#connected) return
    await this.#pulse('gone').catch(() => {})
  }

  #next(delayMs: number): void {
    if (this.#closed) return
    this.#timer?.cancel()
    this.#timer = this.#options.clock.schedule(delayMs, () => {
      this.#round ??= this.#look().finally(() => {
        this.#round = undefined
        this.#next(this.#delayMs())
      })
    })
    // A watch over an idle guard does not keep the process alive.
    if (this.status !== 'starting' || !this.#awaited) this.#timer.unref()
  }

  #delayMs(): number {
    if (this.status === 'starting') return FIRST_LOOK_MS
    if (!this.reachable) return this.#backoff.nextMs()
    const { clock, pod } = this.#options
    const nowMs = clock.now()
    const beatMs = untilBeatMs(pod, BEAT_MS, nowMs)
    if (this.status !== 'apart') return beatMs
    return Math.min(beatMs, Math.max(1, this.#epoch.distrustMs(nowMs)))
  }

  async #look(): Promise<void> {
    const sentMs = this.#options.clock.now()
    try {
      const reply = await this.#pulse(this.#part())
      this.#mindLateness(sentMs)
      await this.#hear(reply)
      if (this.joined) this.#refresh()
    } catch (error) {
      this.#onSilence(error)
    }
  }

  /**
   * Takes a command for each lane. Pulses that only look whether a slow store still answers do not repeat it, or
   * they would make the store slower.
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
    // A connection that is being made needs a moment; one that was refused does not.
    const dialling =
      error instanceof StoreFailure && error.kind === 'not-sent' && error.cause === undefined
    if (!dialling || ++this.#looks >= FIRST_LOOKS) this.#lose(error)
  }

  #part(): PulsePart {
    if (this.#spender === undefined) return 'guest'
    return this.joined || this.status === 'starting' ? 'joined' : 'apart'
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

  /** It is back when it is back to being of use. */
  #mindLateness(sentMs: number): void {
    const tookMs = this.#options.clock.now() - sentMs
    if (this.reachable || tookMs <= (this.#spender?.usableMs ?? tookMs)) return
    throw new StoreFailure('ambiguous', `it took ${Math.round(tookMs)} ms to answer`)
  }

  async #hear(reply: PulseReply): Promise<void> {
    this.heard(reply.nowUs)
    this.#connected = true
    if (this.status === 'away') this.#shares.returned(this.#options.clock.now())
    this.#take(reply)
    if (this.#spender === undefined) return this.#change('shared')
    if (this.#isDistrusted) return this.#change('apart')
    if (this.status === 'starting' || this.joined) return this.#change('shared')
    // The store hears of everything before anybody counts on what it says.
    await this.#spender.tell()
    this.#take(await this.#pulse('joined'))
    this.#change(this.#isDistrusted ? 'apart' : 'shared')
  }

  get #isDistrusted(): boolean {
    return this.#epoch.distrustMs(this.#options.clock.now()) > 0
  }

  /** Which store it is, and who else is there. */
  #take(reply: PulseReply): void {
    const nowMs = this.#options.clock.now()
    const spender = this.#spender
    if (this.#epoch.isOther(reply)) spender?.forgotten()
    if (spender === undefined) return
    if (this.#epoch.hasLost(reply, spender.windowMs, nowMs)) {
      this.#why = new Error('the store has lost what it knew')
    }
    this.#shares.count(reply, nowMs)
  }

  #lose(error: unknown): void {
    this.#why = error
    this.#backoff.lost()
    this.#shares.lost(this.#connected)
    this.#change('away')
    this.#next(this.#backoff.nextMs())
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
    this.reachable = status === 'shared' || status === 'apart'
    if (before === 'away') this.#backoff.found()
    if (status === 'shared') this.#why = undefined
    if (!this.joined && (wasJoined || before === 'starting')) this.#wakeAll()
    if (before === 'starting') this.#begun()
    if (this.joined && !wasJoined && before !== 'starting') {
      this.#spender?.returned()
      this.#wakeAll()
    }
    for (const tell of this.#onChange) tell()
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
