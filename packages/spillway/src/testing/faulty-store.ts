/**
 * A store as if it were far away: every command travels to the store behind, runs there when it
 * arrives, and its answer travels back. On the way things get lost, late, or cut off, as told. For
 * tests and simulations of what callers make of that.
 *
 * Like one TCP connection to one server: commands run in the order they were sent in, and no answer
 * overtakes an earlier one. Pushed messages have a connection of their own. What travels is a copy.
 */

import { refuse } from '../core/errors.js'
import {
  type Check,
  type Duration,
  duration,
  either,
  func,
  having,
  number,
  object,
  optional,
  validate,
} from '../core/options/checks.js'
import type { Random } from '../core/random.js'
import { isThenable } from '../core/thenable.js'
import type { Clock, Timer } from '../core/time/clock.js'
import { TimerList } from '../core/time/timer-list.js'
import type { BreakerWatcher, Store } from '../store/port.js'
import { StoreFailure } from '../store/store-failure.js'
import { PushLine } from './delayed-push.js'
import { type Distribution, drawing, readDistribution } from './distribution.js'
import { DelayLine } from './fifo-delay.js'
import { wireCopy } from './message-copy.js'

export interface FaultyStoreOptions {
  clock: Clock
  /** Decides what is lost, and how long the way is if `latencyMs` asks it. */
  random: Random
  /** There and back together, in milliseconds. Default: 1. */
  latencyMs?: Distribution
  /** After this an answer no longer counts: the command may have run. Default: 100 ms. */
  commandTimeoutMs?: Duration
}

/** What happened so far. */
export interface FaultyStoreCounts {
  /** Commands that left this end. */
  sent: number
  /** Commands refused at this end, because there was no connection. */
  notSent: number
  /** Commands that ran, answered or not. */
  executed: number
  /** Commands whose answer came in time. */
  answered: number
  /** Commands whose caller was told that nobody knows. */
  ambiguous: number
  /** Commands that got lost and never ran. */
  lostRequests: number
  /** Answers that got lost. */
  lostReplies: number
  /** Pushed messages that arrived. */
  pushed: number
  lostPushes: number
  /** Commands at which the store behind threw. */
  errors: number
}

export interface FaultyStore extends Store {
  readonly counts: Readonly<FaultyStoreCounts>
  readonly connected: boolean
  /** For what is sent from now on. */
  setLatency(latencyMs: Distribution): void
  /** So large a share of the commands never arrives, 0 to 1. Their callers wait for the timeout. */
  loseRequests(share: number): void
  /** So large a share of the answers never arrives. The commands did run. */
  loseReplies(share: number): void
  /** So large a share of the pushed messages never arrives. */
  losePushes(share: number): void
  /**
   * Cuts the connection. What is on its way is lost, commands without an answer are `ambiguous` now,
   * new ones `not-sent`.
   */
  goDown(): void
  /** Connects again; watchers hear of a gap. */
  comeBack(): void
  /** Another store behind, with nothing in it. Breaks the connection; if it was up it is up again. */
  restartEmpty(): void
  /**
   * The process at this end has died. What it had sent still runs, nothing leaves any more, and
   * nobody hears an answer: promises given out never settle.
   */
  sever(): void
  /** Waits for the commands under way. The store behind stays open. */
  close(): Promise<void>
}

type PortName = Exclude<keyof Store, 'remote' | 'close'>
type Commands<P extends PortName> = Omit<Store[P], 'watch' | 'onWake'>

/** What travels: a method the port has and this table lacks does not compile. */
const COMMANDS: { [P in PortName]: Record<keyof Commands<P>, true> } = {
  limits: {
    take: true,
    settle: true,
    book: true,
    feedback: true,
    pause: true,
    change: true,
    figures: true,
    report: true,
  },
  levels: { check: true, refund: true },
  breakers: { report: true, probe: true, sync: true, command: true },
  pods: { beat: true, leave: true, ask: true, list: true },
  pulses: { pulse: true },
  queues: {
    add: true,
    reserve: true,
    finish: true,
    extend: true,
    job: true,
    standing: true,
    counts: true,
    dead: true,
    command: true,
  },
}

const share = number({ min: 0, max: 1 })

const readInner: Check<Store | (() => Store)> = either(
  having<Store>('a store', 'close'),
  func<() => Store>(),
)

const readOptions = object({
  clock: having<Clock>('a clock', 'now', 'wallMs', 'schedule', 'pollTurn'),
  random: func<Random>(),
  latencyMs: optional(readDistribution, 1),
  commandTimeoutMs: optional(duration({ min: 0 }), 100),
})

/** With a function instead of a store, what it makes can be lost and made anew: `restartEmpty`. */
export function createFaultyStore(
  inner: Store | (() => Store),
  options: FaultyStoreOptions,
): FaultyStore {
  const behind = validate('faultyStore.inner', inner, readInner)
  return new DistantStore(behind, validate('faultyStore', options, readOptions))
}

class Command {
  /** Its caller has an answer, or knows that there will be none. */
  settled = false
  /** It has run, and this is what came out. */
  outcome: { reply: unknown } | { error: StoreFailure } | undefined
  deadline: Pick<Timer, 'cancel'> | undefined

  constructor(
    readonly port: PortName,
    readonly method: string,
    readonly args: unknown[],
    /** Half of its way. */
    readonly halfMs: number,
    readonly resolve: (reply: unknown) => void,
    readonly reject: (failure: StoreFailure) => void,
  ) {}

  get name(): string {
    return `${this.port}.${this.method}`
  }
}

class DistantStore implements FaultyStore {
  readonly remote = true
  readonly limits: Store['limits']
  readonly levels: Store['levels']
  readonly breakers: Store['breakers']
  readonly pods: Store['pods']
  readonly pulses: Store['pulses']
  readonly queues: Store['queues']
  readonly counts: FaultyStoreCounts = {
    sent: 0,
    notSent: 0,
    executed: 0,
    answered: 0,
    ambiguous: 0,
    lostRequests: 0,
    lostReplies: 0,
    pushed: 0,
    lostPushes: 0,
    errors: 0,
  }
  readonly #random: Random
  readonly #timeoutMs: number
  readonly #make: (() => Store) | undefined
  readonly #requests: DelayLine<Command>
  readonly #replies: DelayLine<Command>
  readonly #pushes: PushLine
  readonly #deadlines: TimerList
  /** Sent, and not settled. */
  readonly #underWay = new Set<Command>()
  /** Run, but an earlier one has not answered yet. A store that answers at once leaves it empty. */
  #running: Command[] = []
  #inner: Store
  #drawLatencyMs: () => number
  #shares = { requests: 0, replies: 0, pushes: 0 }
  #state: 'up' | 'down' | 'closed' | 'dead' = 'up'
  #onIdle = () => {}

  constructor(inner: Store | (() => Store), options: ReturnType<typeof readOptions>) {
    const { clock, random, latencyMs, commandTimeoutMs } = options
    this.#random = random
    this.#drawLatencyMs = drawing(latencyMs, random)
    this.#timeoutMs = commandTimeoutMs
    this.#make = typeof inner === 'function' ? inner : undefined
    this.#inner = typeof inner === 'function' ? inner() : inner
    this.#requests = new DelayLine(clock, (command) => this.#execute(command))
    this.#replies = new DelayLine(clock, (command) => this.#hear(command))
    this.#pushes = new PushLine({
      clock,
      store: () => this.#inner,
      drawHalfMs: () => this.#drawLatencyMs() / 2,
      loses: () => this.#happens(this.#shares.pushes),
      counts: this.counts,
    })
    this.#deadlines = new TimerList(clock, commandTimeoutMs)
    const watchPermits: Store['limits']['watch'] = (pod, { onFreed, onGap }) =>
      this.#inner.limits.watch(pod, {
        onFreed: (guard, lane) => {
          const halfMs = this.#drawLatencyMs() / 2
          if (!this.connected || this.#happens(this.#shares.pushes)) return
          clock.schedule(halfMs, () => onFreed(guard, lane)).unref()
        },
        onGap,
      })
    this.limits = { ...this.#port('limits'), watch: watchPermits }
    this.levels = this.#port('levels')
    this.breakers = { ...this.#port('breakers'), watch: (watcher) => this.#watch(watcher) }
    this.pods = this.#port('pods')
    this.pulses = this.#port('pulses')
    const onWake: Store['queues']['onWake'] = (worker, wake, onGap) =>
      this.#inner.queues.onWake(
        worker,
        () => {
          const halfMs = this.#drawLatencyMs() / 2
          if (this.connected && !this.#happens(this.#shares.pushes)) clock.schedule(halfMs, wake)
        },
        onGap,
      )
    const watch: Store['queues']['watch'] = ({ onChange, onGap }) =>
      this.#inner.queues.watch({
        onChange: (change) => {
          const halfMs = this.#drawLatencyMs() / 2
          if (!this.connected || this.#happens(this.#shares.pushes)) return
          clock.schedule(halfMs, () => onChange(change))
        },
        onGap,
      })
    this.queues = { ...this.#port('queues'), onWake, watch }
  }

  get connected(): boolean {
    return this.#state === 'up'
  }

  setLatency(latencyMs: Distribution): void {
    const checked = validate('latencyMs', latencyMs, readDistribution)
    this.#drawLatencyMs = drawing(checked, this.#random)
  }

  loseRequests(ofAll: number): void {
    this.#shares.requests = validate('share', ofAll, share)
  }

  loseReplies(ofAll: number): void {
    this.#shares.replies = validate('share', ofAll, share)
  }

  losePushes(ofAll: number): void {
    this.#shares.pushes = validate('share', ofAll, share)
  }

  goDown(): void {
    if (this.#state !== 'up') return
    this.#state = 'down'
    this.counts.lostRequests += this.#requests.clear()
    this.counts.lostReplies += this.#replies.clear() + this.#running.splice(0).length
    this.#pushes.goDown()
    for (const command of this.#underWay) this.#giveUp(command, 'the connection was lost')
  }

  comeBack(): void {
    if (this.#state !== 'down') return
    this.#state = 'up'
    this.#pushes.comeBack()
  }

  restartEmpty(): void {
    if (this.#make === undefined) {
      throw new Error('restartEmpty: give createFaultyStore a function that makes the store')
    }
    const wasUp = this.connected
    this.goDown()
    this.#inner = this.#make()
    if (wasUp) this.comeBack()
  }

  sever(): void {
    this.#state = 'dead'
    this.#replies.clear()
    this.#pushes.close()
    this.#underWay.clear()
    this.#deadlines.close()
  }

  async close(): Promise<void> {
    if (this.#state === 'dead') return
    this.#state = 'closed'
    this.#pushes.close()
    // The timeout bounds this wait.
    if (this.#underWay.size > 0) {
      await new Promise<void>((resolve) => {
        this.#onIdle = resolve
      })
    }
    this.#deadlines.close()
  }

  #port<P extends PortName>(port: P): Commands<P> {
    const methods = Object.keys(COMMANDS[port]).map((method) => [
      method,
      (...args: unknown[]) => this.#send(port, method, args),
    ])
    return Object.fromEntries(methods)
  }

  #send(port: PortName, method: string, args: unknown[]): Promise<unknown> {
    if (this.#state === 'dead') return new Promise(() => {})
    if (this.#state !== 'up') {
      this.counts.notSent++
      const why = this.#state === 'down' ? 'no connection' : 'the store is closed'
      return refuse(new StoreFailure('not-sent', `${port}.${method}: ${why}`))
    }
    return new Promise((resolve, reject) => {
      const halfMs = this.#drawLatencyMs() / 2
      const command = new Command(port, method, wireCopy(args), halfMs, resolve, reject)
      this.counts.sent++
      this.#underWay.add(command)
      command.deadline = this.#deadlines.schedule(this.#timeoutMs, () => {
        this.#giveUp(command, `no reply within ${this.#timeoutMs} ms`)
      })
      if (this.#happens(this.#shares.requests)) this.counts.lostRequests++
      else this.#requests.send(command, halfMs)
    })
  }

  #watch(watcher: BreakerWatcher): () => void {
    const gone = this.#state === 'closed' || this.#state === 'dead'
    return gone ? () => {} : this.#pushes.watch(watcher)
  }

  /** Draws nothing where nothing is left to chance, so that a fault costs no other its luck. */
  #happens(ofAll: number): boolean {
    return ofAll === 1 || (ofAll > 0 && this.#random() < ofAll)
  }

  #execute(command: Command): void {
    this.counts.executed++
    this.#running.push(command)
    const done = (outcome: Command['outcome']) => {
      command.outcome = outcome
      this.#answer()
    }
    const failed = (error: unknown) => {
      this.counts.errors++
      done({ error: failureOf(command, error) })
    }
    try {
      const port = this.#inner[command.port]
      const method = port[command.method as keyof typeof port] as Method
      const reply = method.apply(port, command.args)
      if (isThenable(reply)) reply.then((each) => done({ reply: wireCopy(each) }), failed)
      else done({ reply: wireCopy(reply) })
    } catch (error) {
      failed(error)
    }
  }

  #answer(): void {
    while (this.#running[0]?.outcome !== undefined) {
      const command = this.#running.shift() as Command
      if (this.#state === 'dead' || this.#happens(this.#shares.replies)) this.counts.lostReplies++
      else this.#replies.send(command, command.halfMs)
    }
  }

  #hear(command: Command): void {
    const { outcome } = command
    if (command.settled || outcome === undefined) return
    this.counts.answered++
    this.#settle(command)
    if ('error' in outcome) command.reject(outcome.error)
    else command.resolve(outcome.reply)
  }

  #giveUp(command: Command, why: string): void {
    this.counts.ambiguous++
    this.#settle(command)
    command.reject(new StoreFailure('ambiguous', `${command.name}: ${why}`))
  }

  #settle(command: Command): void {
    command.settled = true
    command.deadline?.cancel()
    this.#underWay.delete(command)
    if (this.#underWay.size === 0) this.#onIdle()
  }
}

type Method = (...args: unknown[]) => unknown

/** What a remote store's client would say of it. */
function failureOf({ name }: Command, error: unknown): StoreFailure {
  if (error instanceof StoreFailure) return error
  const message = error instanceof Error ? error.message : String(error)
  return new StoreFailure('server', `${name}: ${message}`, error)
}
