/**
 * Reads the stream of server-sent events and reconnects when it breaks. It uses `fetch` because `EventSource` gives
 * up after an HTTP error, does not report the time of its next attempt, and cannot reconnect on demand.
 */
import type { Messages } from '../wire'

export type FeedState =
  /** No message has been received yet. */
  | { kind: 'connecting' }
  | { kind: 'live' }
  /** Reading needs the token; `wrong`: the one that was sent is not valid. `withdrawn`: reading worked before. */
  | { kind: 'locked'; wrong: boolean; withdrawn: boolean }
  /** Access is denied; `problem` is the server's reason. */
  | { kind: 'barred'; problem: string; withdrawn: boolean }
  /** The connection was lost at `sinceAt`. The next attempt starts at `nextAt`, or is in progress. */
  | { kind: 'lost'; sinceAt: number; nextAt: number | undefined; problem: string }

export type Message = {
  [Name in keyof Messages]: { name: Name; data: Messages[Name] }
}[keyof Messages]

export interface FeedOptions {
  url: string
  /** The screen to show instead of the page, if any. */
  token(): string | undefined
  onMessage(message: Message): void
  onState(state: FeedState): void
}

type Shut = { kind: 'locked'; wrong: boolean } | { kind: 'barred'; problem: string }

/** Errors that a retry does not fix. */
class ShutError extends Error {
  readonly shut: Shut

  constructor(shut: Shut) {
    super(shut.kind)
    this.shut = shut
  }
}

const FIRST_DELAY_MS = 250
const LONGEST_DELAY_MS = 5_000
/** There is a message each second, so a stream without one for this time is dead. */
const SILENCE_MS = 8_000

const LONGEST_TURN_MS = 8

export class Feed {
  readonly #options: FeedOptions
  #lastId: string | undefined
  #failures = 0
  #lostAt: number | undefined
  #retry: ReturnType<typeof setTimeout> | undefined
  #connection: AbortController | undefined

  constructor(options: FeedOptions) {
    this.#options = options
  }

  /** Connects now; also called by the button that skips the wait. */
  connect(): void {
    clearTimeout(this.#retry)
    this.#connection?.abort()
    const connection = new AbortController()
    this.#connection = connection
    if (this.#lostAt === undefined) this.#options.onState({ kind: 'connecting' })
    void this.#read(connection.signal).then(
      () => this.#lost(connection, 'the gateway ended the stream'),
      (error: unknown) => {
        if (error instanceof ShutError) this.#shut(connection, error.shut)
        else this.#lost(connection, wordsOf(error))
      },
    )
  }

  close(): void {
    clearTimeout(this.#retry)
    const connection = this.#connection
    this.#connection = undefined
    connection?.abort()
  }

  /** The page reconnects when the user enters another token or presses the button. */
  #shut(connection: AbortController, shut: Shut): void {
    if (connection !== this.#connection) return
    const withdrawn = this.#lastId !== undefined
    this.#lostAt = undefined
    // The page forgets its data, so the next connection has to send all of it.
    this.#lastId = undefined
    this.#options.onState({ ...shut, withdrawn })
  }

  #lost(connection: AbortController, problem: string): void {
    // Another connection was started in the meantime.
    if (connection !== this.#connection) return
    const now = Date.now()
    this.#lostAt ??= now
    const delayMs = Math.min(LONGEST_DELAY_MS, FIRST_DELAY_MS * 2 ** this.#failures++)
    this.#options.onState({ kind: 'lost', sinceAt: this.#lostAt, nextAt: now + delayMs, problem })
    this.#retry = setTimeout(() => this.connect(), delayMs)
  }

  async #read(signal: AbortSignal): Promise<void> {
    const headers: Record<string, string> = { accept: 'text/event-stream' }
    if (this.#lastId !== undefined) headers['last-event-id'] = this.#lastId
    const token = this.#options.token()
    if (token !== undefined) headers.authorization = `Bearer ${token}`
    const response = await fetch(this.#options.url, { headers, signal, cache: 'no-store' })
    if (response.status === 401) {
      throw new ShutError({ kind: 'locked', wrong: token !== undefined })
    }
    if (response.status === 403) {
      throw new ShutError({ kind: 'barred', problem: await problemIn(response) })
    }
    if (!response.ok || response.body === null) {
      throw new Error(`the gateway answered with ${response.status}`)
    }
    const reader = response.body.getReader()
    const decoder = new TextDecoder()
    let text = ''
    let turnMs = performance.now()
    for (;;) {
      const { done, value } = await withinSilence(reader)
      if (done || signal.aborted) return
      text += decoder.decode(value, { stream: true })
      let from = 0
      for (let end = text.indexOf('\n\n'); end !== -1; end = text.indexOf('\n\n', from)) {
        this.#take(text.slice(from, end))
        from = end + 2
      }
      text = text.slice(from)
      // Yields to the event loop, because reading a backlog without a pause would keep the page from drawing.
      if (performance.now() - turnMs > LONGEST_TURN_MS) {
        await new Promise((resolve) => setTimeout(resolve))
        turnMs = performance.now()
      }
    }
  }

  #take(block: string): void {
    let name = ''
    let data = ''
    for (const line of block.split('\n')) {
      if (line.startsWith('data:')) data += line.slice(5)
      else if (line.startsWith('event:')) name = line.slice(6).trim()
      else if (line.startsWith('id:')) this.#lastId = line.slice(3).trim()
    }
    if (data === '') return
    if (this.#failures > 0 || this.#lostAt !== undefined || name === 'hello') {
      this.#failures = 0
      this.#lostAt = undefined
      this.#options.onState({ kind: 'live' })
    }
    this.#options.onMessage({ name, data: JSON.parse(data) } as Message)
  }
}

/** The error body of a gateway's admin port, or of the dashboard. */
async function problemIn(response: Response): Promise<string> {
  const body = await response.json().catch(() => undefined)
  return String(body?.problem ?? body?.error?.message ?? 'the gateway gave no reason')
}

async function withinSilence(reader: ReadableStreamDefaultReader<Uint8Array>) {
  let timer: ReturnType<typeof setTimeout> | undefined
  const silence = new Promise<never>((_, reject) => {
    timer = setTimeout(() => {
      reject(new Error(`no data for ${SILENCE_MS / 1_000} seconds`))
      void reader.cancel().catch(() => {})
    }, SILENCE_MS)
  })
  try {
    return await Promise.race([reader.read(), silence])
  } finally {
    clearTimeout(timer)
  }
}

function wordsOf(error: unknown): string {
  // The browser's message for a refused connection does not help users.
  if (error instanceof TypeError) return 'the gateway cannot be reached'
  return error instanceof Error ? error.message : String(error)
}
