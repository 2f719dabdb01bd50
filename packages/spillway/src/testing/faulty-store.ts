/**
 * Simulates a remote store: every command travels to the store behind, runs there when it arrives,
 * and its reply travels back. Commands and replies can be lost, delayed or cut off. For tests and
 * simulations of how callers handle that.
 *
 * Behaves like one TCP connection to one server: commands run in the order in which they were sent,
 * and no reply overtakes an earlier one. Pushed messages have a connection of their own. Messages
 * are copied.
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
import type { Clock } from '../core/time/clock.js'
import { TimerList } from '../core/time/timer-list.js'
import type { BreakerWatcher, Store } from '../store/port.js'
import { StoreFailure } from '../store/store-failure.js'
import { DelayedPush } from './delayed-push.js'
import { type Distribution, drawing, readDistribution } from './distribution.js'
import { FifoDelay } from './fifo-delay.js'
import {
  COMMANDS,
  Command,
  type Commands,
  copyMessage,
  failureOf,
  type PortName,
} from './simulated-command.js'

/** Options of a faulty store. */
export interface FaultyStoreOptions {
  /** The clock it runs on. */
  clock: Clock
  /** Decides what is lost, and draws `latencyMs` if that is a function. */
  random: Random
  /** Round-trip time. Range: from 0 ms. Default: 1 ms. */
  latencyMs?: Distribution
  /**
   * A reply after this time no longer counts, although the command may have run. Range: from 0 ms. Default: 100
   * ms.
   */
  commandTimeoutMs?: Duration
}

/** What happened so far. */
export interface FaultyStoreCounts {
  /** Commands sent. */
  sent: number
  /** Commands refused because there was no connection. */
  notSent: number
  /** Commands that ran, whether or not their reply arrived. */
  executed: number
  /** Commands that ran, by port and method, such as `limits.take`. */
  byKind: Readonly<Record<string, number>>
  /** Commands whose reply arrived in time. */
  answered: number
  /** Commands that failed as `ambiguous`. */
  ambiguous: number
  /** Commands that were lost and never ran. */
  lostRequests: number
  /** Replies that were lost. */
  lostReplies: number
  /** Pushed messages that arrived. */
  pushed: number
  /** Messages that were not delivered. */
  lostPushes: number
  /** Commands for which the store behind threw. */
  errors: number
}

/** A store that fails on demand, for tests. */
export interface FaultyStore extends Store {
  /** What the store did to commands. */
  readonly counts: Readonly<FaultyStoreCounts>
  /** Whether the store is reachable. */
  readonly connected: boolean
  /** For commands sent from now on. */
  setLatency(latencyMs: Distribution): void
  /** Loses this share of the commands, 0 to 1. Their callers wait for the timeout. */
  loseRequests(share: number): void
  /** Loses this share of the replies. The commands did run. */
  loseReplies(share: number): void
  /** Loses this share of the pushed messages. */
  losePushes(share: number): void
  /**
   * Cuts the connection. Messages in flight are lost, commands without a reply fail as `ambiguous`,
   * new ones as `not-sent`.
   */
  goDown(): void
  /** Connects again; watchers get a gap. */
  comeBack(): void
  /**
   * Replaces the store behind by an empty one. Breaks the connection and restores it if it was up.
   */
  restartEmpty(): void
  /**
   * Simulates the death of this process. Commands in flight still run, nothing more is sent, and no
   * reply is delivered: pending promises never settle.
   */
  sever(): void
  /** Waits for the commands in flight. The store behind stays open. */
  close(): Promise<void>
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

/**
 * Creates a store with latency and failures around another one. With a function in place of a store,
 * `restartEmpty` can create a new one.
 *
 * @example
 * const store = createFaultyStore(() => memoryStore({ clock }), { clock, random, latencyMs: 2 })
 * store.goDown()
 */
export function createFaultyStore(
  inner: Store | (() => Store),
  options: FaultyStoreOptions,
): FaultyStore {
  const behind = validate('faultyStore.inner', inner, readInner)
  return new DistantStore(behind, validate('faultyStore', options, readOptions))
}

class DistantStore implements FaultyStore {
  readonly remote = true
  readonly limits: Store['limits']
  readonly levels: Store['levels']
  readonly breakers: Store['breakers']
  readonly pods: Store['pods']
  readonly pulses: Store['pulses']
  readonly queues: Store['queues']
  readonly counts: FaultyStoreCounts & { byKind: Record<string, number> } = {
    sent: 0,
    notSent: 0,
    executed: 0,
    byKind: {},
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
  readonly #requests: FifoDelay<Command>
  readonly #replies: FifoDelay<Command>
  readonly #pushes: DelayedPush
  readonly #deadlines: TimerList
  /** Sent and not settled. */
  readonly #underWay = new Set<Command>()
  /**
   * Commands in flight, and commands whose replies wait for an earlier one. Empty with a synchronous
   * store.
   */
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
    this.#requests = new FifoDelay(clock, (command) => this.#execute(command))
    this.#replies = new FifoDelay(clock, (command) => this.#receiveReply(command))
    this.#pushes = new DelayedPush({
      clock,
      store: () => this.#inner,
      drawHalfMs: () => this.#drawLatencyMs() / 2,
      loses: () => this.#drawFault(this.#shares.pushes),
      counts: this.counts,
    })
    this.#deadlines = new TimerList(clock, commandTimeoutMs)
    const watchPermits: Store['limits']['watch'] = (pod, { onFreed, onGap }) =>
      this.#inner.limits.watch(pod, {
        onFreed: (guard, lane) => {
          const halfMs = this.#drawLatencyMs() / 2
          if (!this.connected || this.#drawFault(this.#shares.pushes)) return
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
          if (this.connected && !this.#drawFault(this.#shares.pushes)) clock.schedule(halfMs, wake)
        },
        onGap,
      )
    const watch: Store['queues']['watch'] = ({ onChange, onGap }) =>
      this.#inner.queues.watch({
        onChange: (change) => {
          const halfMs = this.#drawLatencyMs() / 2
          if (!this.connected || this.#drawFault(this.#shares.pushes)) return
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
      throw new Error('restartEmpty: pass a function that creates the store to createFaultyStore')
    }
    const wasConnected = this.connected
    this.goDown()
    this.#inner = this.#make()
    if (wasConnected) this.comeBack()
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
    // The timeout limits this wait.
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
      return refuse(new StoreFailure('not-sent', why))
    }
    return new Promise((resolve, reject) => {
      const halfMs = this.#drawLatencyMs() / 2
      const command = new Command(port, method, copyMessage(args), halfMs, resolve, reject)
      this.counts.sent++
      this.#underWay.add(command)
      command.deadline = this.#deadlines.schedule(this.#timeoutMs, () => {
        this.#giveUp(command, `no reply within ${this.#timeoutMs} ms (commandTimeoutMs)`)
      })
      if (this.#drawFault(this.#shares.requests)) this.counts.lostRequests++
      else this.#requests.send(command, halfMs)
    })
  }

  #watch(watcher: BreakerWatcher): () => void {
    const isClosed = this.#state === 'closed' || this.#state === 'dead'
    return isClosed ? () => {} : this.#pushes.watch(watcher)
  }

  /** Draws no random number for shares of 0 and 1, so that one fault does not change the others. */
  #drawFault(ofAll: number): boolean {
    return ofAll === 1 || (ofAll > 0 && this.#random() < ofAll)
  }

  #execute(command: Command): void {
    const { counts } = this
    counts.executed++
    counts.byKind[command.name] = (counts.byKind[command.name] ?? 0) + 1
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
      if (isThenable(reply)) reply.then((each) => done({ reply: copyMessage(each) }), failed)
      else done({ reply: copyMessage(reply) })
    } catch (error) {
      failed(error)
    }
  }

  #answer(): void {
    while (this.#running[0]?.outcome !== undefined) {
      const command = this.#running.shift() as Command
      if (this.#state === 'dead' || this.#drawFault(this.#shares.replies)) this.counts.lostReplies++
      else this.#replies.send(command, command.halfMs)
    }
  }

  #receiveReply(command: Command): void {
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
    command.reject(new StoreFailure('ambiguous', why))
  }

  #settle(command: Command): void {
    command.settled = true
    command.deadline?.cancel()
    this.#underWay.delete(command)
    if (this.#underWay.size === 0) this.#onIdle()
  }
}

type Method = (...args: unknown[]) => unknown
