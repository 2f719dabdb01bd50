/**
 * Runs scripts on a Redis server, each with a deadline and each at most once. What fails says in
 * which of three ways (`StoreFailure`), because what to do next depends on whether it may have run.
 * Only replies which say that nothing has run lead to a second command: NOSCRIPT, and what a cluster
 * says of keys that are elsewhere.
 */

import { refuse } from '../../../core/errors.js'
import type { Clock, Timer } from '../../../core/time/clock.js'
import { TimerList } from '../../../core/time/timer-list.js'
import { type FailureKind, StoreFailure } from '../../store-failure.js'
import { messageOf } from './failure-kind.js'
import type { FirstConnection, Patience } from './first-connection.js'

export interface Script {
  readonly name: string
  /** Hexadecimal SHA-1 of the text: what the server knows the script by. */
  readonly sha: string
  readonly text: string
}

/** What a Redis client has to be able to do. */
export interface RedisClient {
  /** Whether a command sent now would reach the server. */
  readonly ready: boolean
  /** Why it is not ready, if that is known. */
  readonly problem: unknown
  /**
   * Sends one command, in the order of the calls, and answers with its reply. Never queues for a
   * connection that is not there, never sends anything twice. `key` is one of the command's keys:
   * in a cluster, what decides who gets it, unless we were told to go `via` another node.
   */
  send(args: readonly string[], key: string | undefined, via?: Via): Promise<unknown>
  /** What an error that `send` rejected with says about the command. */
  kindOf(error: unknown): FailureKind
  /** Absent but in a cluster: in which of its parts a key is. */
  readonly slotOf?: ((key: string) => number) | undefined
  /** In a cluster: where to go with the command, if that is what the error says. */
  redirect?(message: string): Via | undefined
  /** There was no answer in time: looks whether the connection is dead. Absent if that is for others to do. */
  doubt?(key: string | undefined): void
  /** Gives up a connection that leads to the wrong server. Absent if that is for others to do. */
  reconnect?(why: Error): void
  close(): Promise<void>
}

/** A node of a cluster, named by another. */
export interface Via {
  readonly node: string
  /** Only for this command: the keys are on their way there. */
  readonly asking: boolean
}

export interface ScriptRunnerOptions {
  /** Longest time from sending to reply, in milliseconds. */
  commandTimeoutMs: number
  clock: Clock
  /** What scripts with patience wait for. */
  first?: Pick<FirstConnection, 'made' | 'missed' | 'wait'>
}

export interface ScriptRunner {
  /**
   * Answers with the script's reply or rejects with a `StoreFailure`. With `patience` it waits for the
   * first connection, and not for a later one: a store that was lost has outage rules.
   */
  run(
    script: Script,
    keys: readonly string[],
    args: readonly (string | number)[],
    patience?: Patience,
  ): Promise<unknown>
  /** In a cluster: in which of its parts a key is. A script has the keys of one of them. */
  readonly slotOf: ((key: string) => number) | undefined
  /** Commands sent so far, for tests and benches. */
  readonly commands: number
  /** Refuses new scripts, waits for those under way, then closes the client. */
  close(): Promise<void>
}

/** Where keys are on their way from one node to another, both may be needed before they can be used. */
const TRY_AGAIN_MS = 10
/** A cluster in which nodes point at each other would send us in circles. */
const MOST_REDIRECTS = 5

/** Scripts sent in one turn of the event loop. They share a deadline. */
class Batch {
  readonly calls: Call[] = []
  unsettled = 0
  deadline: Pick<Timer, 'cancel'> | undefined
}

class Call {
  settled = false
  via: Via | undefined
  redirects = 0

  constructor(
    readonly script: Script,
    readonly key: string | undefined,
    readonly command: string[],
    readonly batch: Batch,
    readonly resolve: (reply: unknown) => void,
    readonly reject: (failure: StoreFailure) => void,
  ) {}
}

class Runner implements ScriptRunner {
  commands = 0
  readonly slotOf: ((key: string) => number) | undefined
  readonly #client: RedisClient
  readonly #first: ScriptRunnerOptions['first']
  readonly #clock: Clock
  readonly #timeoutMs: number
  readonly #deadlines: TimerList
  #batch: Batch | undefined
  #unsettled = 0
  #closed: Promise<void> | undefined
  #drained = () => {}

  constructor(client: RedisClient, { commandTimeoutMs, clock, first }: ScriptRunnerOptions) {
    this.#client = client
    this.#first = first
    this.slotOf = client.slotOf
    this.#clock = clock
    this.#timeoutMs = commandTimeoutMs
    this.#deadlines = new TimerList(clock, commandTimeoutMs)
  }

  run(
    script: Script,
    keys: readonly string[],
    args: readonly (string | number)[],
    patience?: Patience,
  ): Promise<unknown> {
    if (this.#closed !== undefined) return refuse(notSent(script, 'the store is closed'))
    if (!this.#client.ready) return this.#offline(script, keys, args, patience)
    return new Promise((resolve, reject) => {
      const command = ['EVALSHA', script.sha, String(keys.length), ...keys]
      for (const arg of args) command.push(typeof arg === 'string' ? arg : String(arg))
      const batch = this.#batch ?? new Batch()
      const call = new Call(script, keys[0], command, batch, resolve, reject)
      batch.calls.push(call)
      batch.unsettled++
      this.#unsettled++
      this.#send(call)
      // After sending, so that the client, which also waits for the loop, has its turn first.
      if (this.#batch === undefined) this.#openBatch(batch)
    })
  }

  #offline(
    script: Script,
    keys: readonly string[],
    args: readonly (string | number)[],
    patience: Patience | undefined,
  ): Promise<unknown> {
    const first = this.#first
    first?.missed()
    if (first === undefined || first.made || patience === undefined) {
      return refuse(offline(script, this.#client))
    }
    return first.wait(patience).then(() => this.run(script, keys, args))
  }

  close(): Promise<void> {
    this.#closed ??= this.#shut()
    return this.#closed
  }

  async #shut(): Promise<void> {
    // The deadline bounds this wait.
    if (this.#unsettled > 0) {
      await new Promise<void>((resolve) => {
        this.#drained = resolve
      })
    }
    this.#deadlines.close()
    await this.#client.close()
  }

  #send(call: Call): void {
    this.commands++
    this.#client.send(call.command, call.key, call.via).then(
      (reply) => this.#onReply(call, reply),
      (error: unknown) => this.#onError(call, error),
    )
  }

  /**
   * The deadline counts from when the loop has come to writing, not from when it was asked to: a
   * client gathers what one turn sends, and a turn may be long.
   */
  #openBatch(batch: Batch): void {
    this.#batch = batch
    this.#clock.pollTurn(() => {
      this.#batch = undefined
      if (batch.unsettled === 0) return
      batch.deadline = this.#deadlines.schedule(this.#timeoutMs, () => {
        // If this process was the one that was late, the replies are waiting to be read.
        this.#clock.pollTurn(() => this.#expire(batch))
      })
    })
  }

  #onReply(call: Call, reply: unknown): void {
    if (call.settled) return
    this.#settle(call)
    call.resolve(reply)
  }

  #onError(call: Call, error: unknown): void {
    if (call.settled) return
    const kind = this.#client.kindOf(error)
    if (kind === 'server' && this.#sendAgain(call, messageOf(error))) return
    this.#settle(call)
    call.reject(new StoreFailure(kind, `${call.script.name}: ${messageOf(error)}`, error))
  }

  /** After an error which says that nothing has run, and what would help. */
  #sendAgain(call: Call, message: string): boolean {
    if (message.startsWith('NOSCRIPT') && call.command[0] === 'EVALSHA') {
      this.#sendText(call)
      return true
    }
    // A server that was demoted: whoever connects again will find the right one.
    if (message.startsWith('READONLY')) this.#client.reconnect?.(new Error(message))
    if (this.#client.redirect === undefined) return false
    if (message.startsWith('TRYAGAIN')) {
      // Bounded by the deadline, which settles the call.
      this.#clock.schedule(TRY_AGAIN_MS, () => {
        if (!call.settled) this.#send(call)
      })
      return true
    }
    const via = this.#client.redirect(message)
    if (via === undefined || ++call.redirects > MOST_REDIRECTS) return false
    call.via = via
    this.#send(call)
    return true
  }

  /** The server does not know the script, after a restart for example; this time it gets the text. */
  #sendText(call: Call): void {
    if (this.#client.ready) {
      call.command[0] = 'EVAL'
      call.command[1] = call.script.text
      return this.#send(call)
    }
    this.#settle(call)
    call.reject(offline(call.script, this.#client))
  }

  #expire(batch: Batch): void {
    for (const call of batch.calls) {
      if (call.settled) continue
      this.#settle(call)
      const message = `${call.script.name}: no reply within ${this.#timeoutMs} ms`
      call.reject(new StoreFailure('ambiguous', message))
      this.#client.doubt?.(call.key)
    }
  }

  #settle(call: Call): void {
    call.settled = true
    const { batch } = call
    if (--batch.unsettled === 0) batch.deadline?.cancel()
    if (--this.#unsettled === 0) this.#drained()
  }
}

export function createScriptRunner(
  client: RedisClient,
  options: ScriptRunnerOptions,
): ScriptRunner {
  return new Runner(client, options)
}

function notSent(script: Script, why: string, cause?: unknown): StoreFailure {
  return new StoreFailure('not-sent', `${script.name}: ${why}`, cause)
}

function offline(script: Script, { problem }: RedisClient): StoreFailure {
  const why = problem === undefined ? '' : `: ${messageOf(problem)}`
  return notSent(script, `no connection to Redis${why}`, problem)
}
