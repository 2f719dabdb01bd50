/**
 * Runs scripts on Redis, each with a deadline and each at most once. A failure is one of three
 * kinds (`StoreFailure`), because the reaction depends on whether the script may have run. A
 * command is sent again only after replies which say that nothing has run: NOSCRIPT, and
 * redirections of a cluster.
 */

import { refuse } from '../../../core/errors.js'
import type { Clock, Timer } from '../../../core/time/clock.js'
import { TimerList } from '../../../core/time/timer-list.js'
import { type FailureKind, StoreFailure } from '../../store-failure.js'
import { messageOf } from './failure-kind.js'
import type { FirstConnection, WaitMode } from './first-connection.js'

export interface Script {
  readonly name: string
  /** Hexadecimal SHA-1 of the text, by which the server knows the script. */
  readonly sha: string
  readonly text: string
}

/** The part of a Redis client that the runner uses. */
export interface RedisClient {
  /** Whether a command sent now would reach the server. */
  readonly ready: boolean
  /** Why it is not ready, if known. */
  readonly problem: unknown
  /**
   * Sends one command, in the order of the calls, and returns its reply. Never queues commands
   * while there is no connection, and never sends anything twice. `key` is one of the command's
   * keys: in a cluster it decides which node gets the command, unless `via` names another.
   */
  send(args: readonly string[], key: string | undefined, via?: Via): Promise<unknown>
  /** Classifies an error that `send` rejected with. */
  kindOf(error: unknown): FailureKind
  /** Set for clusters only: the slot of a key. */
  readonly slotOf?: ((key: string) => number) | undefined
  /** In a cluster: where to send the command instead, if the error is a redirection. */
  redirect?(message: string): Via | undefined
  /**
   * A reply was late: checks whether the connection is dead. Absent if the application's client
   * does that.
   */
  checkAlive?(key: string | undefined): void
  /** Drops a connection to the wrong server. Absent if the application's client does that. */
  reconnect?(why: Error): void
  close(): Promise<void>
}

/** A node of a cluster that another node named. */
export interface Via {
  readonly node: string
  /** Only for this command, because the keys are being moved there. */
  readonly asking: boolean
}

export interface ScriptRunnerOptions {
  /** Longest time from sending to reply, in milliseconds. */
  commandTimeoutMs: number
  clock: Clock
  /** The first connection, for which scripts with a `waitMode` wait. */
  first?: Pick<FirstConnection, 'made' | 'missed' | 'wait'>
}

export interface ScriptRunner {
  /**
   * Returns the script's reply or rejects with a `StoreFailure`. With `waitMode` it waits for the
   * first connection, but not for a later one: for a store that was lost there are outage rules.
   */
  run(
    script: Script,
    keys: readonly string[],
    args: readonly (string | number)[],
    waitMode?: WaitMode,
  ): Promise<unknown>
  /** In a cluster: the slot of a key. All keys of a script are in one slot. */
  readonly slotOf: ((key: string) => number) | undefined
  /** Commands sent so far, for tests and benchmarks. */
  readonly commands: number
  /** Refuses new scripts, waits for running ones, then closes the client. */
  close(): Promise<void>
}

/** While keys are being moved between nodes, a command may have to wait. */
const TRY_AGAIN_MS = 10
/** Limits redirections, in case nodes of a broken cluster point at each other. */
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
    waitMode?: WaitMode,
  ): Promise<unknown> {
    if (this.#closed !== undefined)
      return refuse(new StoreFailure('not-sent', 'the store is closed'))
    if (!this.#client.ready) return this.#offline(script, keys, args, waitMode)
    return new Promise((resolve, reject) => {
      const command = ['EVALSHA', script.sha, String(keys.length), ...keys]
      for (const arg of args) command.push(typeof arg === 'string' ? arg : String(arg))
      const batch = this.#batch ?? new Batch()
      const call = new Call(script, keys[0], command, batch, resolve, reject)
      batch.calls.push(call)
      batch.unsettled++
      this.#unsettled++
      this.#send(call)
      // After sending, so that the client's own callback for the end of the turn comes first.
      if (this.#batch === undefined) this.#openBatch(batch)
    })
  }

  #offline(
    script: Script,
    keys: readonly string[],
    args: readonly (string | number)[],
    waitMode: WaitMode | undefined,
  ): Promise<unknown> {
    const first = this.#first
    first?.missed()
    if (first === undefined || first.made || waitMode === undefined) {
      return refuse(offline(this.#client))
    }
    return first.wait(waitMode).then(() => this.run(script, keys, args))
  }

  close(): Promise<void> {
    this.#closed ??= this.#shut()
    return this.#closed
  }

  async #shut(): Promise<void> {
    // The deadline limits this wait.
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
   * The deadline counts from the moment at which the event loop writes: a client buffers commands of one turn, and a
   * turn may be long.
   */
  #openBatch(batch: Batch): void {
    this.#batch = batch
    this.#clock.pollTurn(() => {
      this.#batch = undefined
      if (batch.unsettled === 0) return
      batch.deadline = this.#deadlines.schedule(this.#timeoutMs, () => {
        // If this process itself was late, the replies may be waiting to be read.
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

  /** Sends a command again after an error which says that nothing has run. */
  #sendAgain(call: Call, message: string): boolean {
    if (message.startsWith('NOSCRIPT') && call.command[0] === 'EVALSHA') {
      this.#sendText(call)
      return true
    }
    // The server was demoted. A new connection will find the new master.
    if (message.startsWith('READONLY')) this.#client.reconnect?.(new Error(message))
    if (this.#client.redirect === undefined) return false
    if (message.startsWith('TRYAGAIN')) {
      // Limited by the deadline, which settles the call.
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

  /** The server does not know the script, for example after a restart. It now gets the text. */
  #sendText(call: Call): void {
    if (this.#client.ready) {
      call.command[0] = 'EVAL'
      call.command[1] = call.script.text
      return this.#send(call)
    }
    this.#settle(call)
    call.reject(offline(this.#client))
  }

  #expire(batch: Batch): void {
    for (const call of batch.calls) {
      if (call.settled) continue
      this.#settle(call)
      const message = `no reply within ${this.#timeoutMs} ms (commandTimeoutMs)`
      call.reject(new StoreFailure('ambiguous', message))
      this.#client.checkAlive?.(call.key)
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

/** The message has no script name, because refusals and events quote it to users. */
function offline({ problem }: RedisClient): StoreFailure {
  const why = problem === undefined ? '' : `: ${messageOf(problem)}`
  return new StoreFailure('not-sent', `no connection to Redis${why}`, problem)
}
