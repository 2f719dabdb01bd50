/** Messages between the supervisor and one worker: each is a request with an answer, or a failure. */
import type { Socket } from 'node:net'
import type { Clock } from 'spillway'
import { systemClock, type Timer } from 'spillway/internal'

/** One end of the IPC connection of a worker process. */
export interface MessagePort {
  /** `onFailed` is called if the message could not be sent. */
  send(message: object, handle: Socket | undefined, onFailed: (error: Error) => void): void
  onMessage(listener: (message: unknown, handle: unknown) => void): void
}

/** Functions that the other side may call, by name. Arguments and results must survive JSON. */
// biome-ignore lint/suspicious/noExplicitAny: each function has its own argument
export type Api = Record<string, (argument: any, handle?: Socket) => unknown>

type Result<F> = F extends (...args: never[]) => infer R ? Awaited<R> : never
type Argument<F> = F extends (argument: infer A, ...rest: never[]) => unknown ? A : undefined

interface Message {
  readonly spillway: 'call' | 'result' | 'error'
  readonly id: number
  readonly name?: string
  readonly value?: unknown
}

interface Waiting {
  resolve(value: unknown): void
  reject(error: Error): void
  readonly timer: Timer | undefined
}

/** Timeout of calls without network access: a process that takes longer hangs. */
const ANSWER_MS = 5_000

export class Channel<Remote> {
  readonly #port: MessagePort
  readonly #api: Api
  readonly #clock: Clock
  readonly #waiting = new Map<number, Waiting>()
  #lastId = 0
  #closed = false

  constructor(port: MessagePort, api: Api, clock: Clock = systemClock) {
    this.#port = port
    this.#api = api
    this.#clock = clock
    port.onMessage((message, handle) => {
      if (isMessage(message)) this.#receive(message, handle as Socket | undefined)
    })
  }

  /**
   * Calls a function of the other side. Rejects if it fails, does not answer in time, or the process ends. With an
   * infinite `timeoutMs` a rejection after a send means that the process has ended without an answer.
   */
  call<K extends keyof Remote & string>(
    name: K,
    argument: Argument<Remote[K]>,
    { handle, timeoutMs = ANSWER_MS }: { handle?: Socket; timeoutMs?: number } = {},
  ): Promise<Result<Remote[K]>> {
    return new Promise((resolve, reject) => {
      if (this.#closed) return reject(new Error('the process has ended'))
      const id = ++this.#lastId
      const fail = (error: Error) => this.#take(id)?.reject(error)
      const timer = Number.isFinite(timeoutMs)
        ? this.#clock.schedule(timeoutMs, () =>
            fail(new Error(`no answer to ${name} within ${timeoutMs} ms`)),
          )
        : undefined
      this.#waiting.set(id, { resolve: resolve as (value: unknown) => void, reject, timer })
      const message: Message = { spillway: 'call', id, name, value: argument }
      this.#port.send(message, handle, fail)
    })
  }

  /** Fails every call that waits for an answer: the other process has ended. */
  close(): void {
    this.#closed = true
    for (const id of [...this.#waiting.keys()]) {
      this.#take(id)?.reject(new Error('the process has ended'))
    }
  }

  #receive(message: Message, handle: Socket | undefined): void {
    const { spillway, id, name = '', value } = message
    if (spillway === 'call') void this.#answer(id, name, value, handle)
    else if (spillway === 'result') this.#take(id)?.resolve(value)
    else this.#take(id)?.reject(new Error(String(value)))
  }

  async #answer(id: number, name: string, value: unknown, handle: Socket | undefined) {
    const reply = (spillway: 'result' | 'error', answer: unknown) =>
      this.#port.send({ spillway, id, value: answer } satisfies Message, undefined, () => {})
    try {
      const handler = Object.hasOwn(this.#api, name) ? this.#api[name] : undefined
      if (handler === undefined) throw new Error(`unknown message "${name}"`)
      reply('result', await handler(value, handle))
    } catch (error) {
      reply('error', error instanceof Error ? error.message : String(error))
    }
  }

  #take(id: number): Waiting | undefined {
    const waiting = this.#waiting.get(id)
    this.#waiting.delete(id)
    waiting?.timer?.cancel()
    return waiting
  }
}

function isMessage(message: unknown): message is Message {
  return typeof message === 'object' && message !== null && 'spillway' in message
}
