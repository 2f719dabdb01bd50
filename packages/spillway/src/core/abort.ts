/**
 * Listens to a caller's AbortSignal without leaking listeners. A signal can live as long as the
 * process and be passed to a million calls. So each signal gets one listener, which is removed when
 * no call waits for it. If a signal is already aborted, `run` is called at once.
 */
import { OptionsError } from './options/checks.js'

/**
 * Says that a caller has left, at a tenth of the cost of an AbortSignal. Servers create one for
 * each request. It is accepted wherever a caller's AbortSignal is.
 */
export class LeaveSignal {
  aborted = false
  reason: unknown = undefined
  /** Nearly always there is exactly one listener. */
  #first: (() => void) | undefined
  #others: Set<() => void> | undefined

  abort(reason: unknown): void {
    if (this.aborted) return
    this.aborted = true
    this.reason = reason
    const [first, others] = [this.#first, this.#others]
    this.#first = undefined
    this.#others = undefined
    first?.()
    if (others !== undefined) for (const run of others) run()
  }

  /** Calls `run` on abort, unless the returned function is called first. */
  listen(run: () => void): () => void {
    if (this.#first === undefined) {
      this.#first = run
      return () => {
        if (this.#first === run) this.#first = undefined
      }
    }
    this.#others ??= new Set()
    // Wrapped, so that one `run` function can be registered twice.
    const listener = () => run()
    this.#others.add(listener)
    return () => this.#others?.delete(listener)
  }
}

export type CallerSignal = AbortSignal | LeaveSignal

/**
 * Throws an options error. Otherwise a signal of the wrong type fails only when its call has to
 * wait.
 */
export function checkSignal(signal: unknown): void {
  if (signal instanceof AbortSignal || signal instanceof LeaveSignal) return
  // Another implementation of AbortSignal, such as a polyfill.
  if (isListenedTo(signal)) return
  const shown = typeof signal === 'object' && signal !== null ? 'an object' : String(signal)
  const message = `must be an AbortSignal, got ${shown}; leave signal out where there is none`
  throw new OptionsError([{ path: 'signal', message }])
}

function isListenedTo(signal: unknown): boolean {
  if (typeof signal !== 'object' || signal === null) return false
  const { addEventListener, removeEventListener } = signal as Partial<AbortSignal>
  return typeof addEventListener === 'function' && typeof removeEventListener === 'function'
}

interface Listening {
  readonly waiting: Set<() => void>
  readonly onAbort: () => void
}

const listenings = new WeakMap<AbortSignal, Listening>()

/** Calls `run` on abort, unless the returned function is called first. */
export function onAbort(signal: CallerSignal, run: () => void): () => void {
  if (signal.aborted) {
    run()
    return () => {}
  }
  if (signal instanceof LeaveSignal) return signal.listen(run)
  const { waiting, onAbort } = listenings.get(signal) ?? listenTo(signal)
  // Wrapped, so that one `run` function can be registered twice.
  const listener = () => run()
  waiting.add(listener)
  return () => {
    if (!waiting.delete(listener) || waiting.size > 0) return
    signal.removeEventListener('abort', onAbort)
    listenings.delete(signal)
  }
}

function listenTo(signal: AbortSignal): Listening {
  const waiting = new Set<() => void>()
  const onAbort = () => {
    listenings.delete(signal)
    for (const run of waiting) run()
    waiting.clear()
  }
  signal.addEventListener('abort', onAbort, { once: true })
  const listening = { waiting, onAbort }
  listenings.set(signal, listening)
  return listening
}
