/**
 * Injected time. All code of the library reads the time and waits through a `Clock`: the real one
 * below, or the virtual one of `spillway/testing`.
 */
export interface Clock {
  /**
   * Milliseconds with fractions, monotonic, with an arbitrary zero. Only differences are
   * meaningful.
   */
  now(): number
  /** Milliseconds since the Unix epoch, for dates that come from outside. */
  wallMs(): number
  /** Calls `run` once, `delayMs` from now or later, never earlier. Keeps the process alive. */
  schedule(delayMs: number, run: () => void): Timer
  /**
   * Calls `run` once, after the event loop has polled its sockets. If a timer calls this,
   * everything that had arrived when the timer fired is read first. So a process that was itself
   * busy can find out before it declares a reply late. Keeps the process alive.
   */
  pollTurn(run: () => void): void
}

/** A scheduled call. Each method may be called at any time and more than once. */
export interface Timer {
  /** Stops the timer. */
  cancel(): void
  /** Lets the process end although this timer is armed. */
  unref(): void
  /** Undoes `unref`. */
  ref(): void
}

/** `setTimeout` has a 32-bit delay and fires at once beyond it. Longer waits take several timers. */
const LONGEST_LEG_MS = 2 ** 31 - 1

function scheduleTimer(delayMs: number, run: () => void): Timer {
  const dueMs = performance.now() + delayMs
  let keepsAlive = true
  let handle = setTimeout(fire, legMs(delayMs))

  /** Node's timers can fire up to one millisecond early; this clock never does. */
  function fire(): void {
    const leftMs = dueMs - performance.now()
    // Written so that a delay of NaN ends, too.
    if (!(leftMs > 0)) return run()
    handle = setTimeout(fire, legMs(leftMs))
    if (!keepsAlive) handle.unref()
  }

  return {
    cancel: () => clearTimeout(handle),
    unref: () => {
      keepsAlive = false
      handle.unref()
    },
    ref: () => {
      keepsAlive = true
      handle.ref()
    },
  }
}

/** Node warns about negative delays. */
function legMs(leftMs: number): number {
  return leftMs > 0 ? Math.min(Math.ceil(leftMs), LONGEST_LEG_MS) : 0
}

/** The clock of the system. */
export const systemClock: Clock = {
  now: () => performance.now(),
  wallMs: () => Date.now(),
  schedule: scheduleTimer,
  // The event loop polls sockets between timers and immediates. Data read there, and all promises that it settles,
  // are handled before the first immediate runs.
  pollTurn: (run) => {
    setImmediate(run)
  },
}

/** Whole microseconds. `atMs`: a time just read from the same clock, to save a second reading. */
export type Microseconds = (atMs?: number) => number

/** For stores in this process: the time of day at the start, then monotonic. */
export function createMicroseconds(clock: Clock): Microseconds {
  const startMs = clock.now()
  const startUs = Math.floor(clock.wallMs()) * 1_000
  return (atMs = clock.now()) => startUs + Math.floor((atMs - startMs) * 1_000)
}

/** Read at load time, because fake timers of a test may replace it. */
const { nextTick } = process

/** The result of `turnMs` in this turn of the event loop. */
let turn: number | undefined

function endTurn(): void {
  turn = undefined
}

/**
 * The time at which this turn of the event loop first called `turnMs`. Used for the ages of calls,
 * which wait for the network for at least one turn. Code that makes many calls in one turn reads
 * the clock once and not three times per call, which saves 120 of 400 ns. Other clocks are read
 * each time.
 */
export function turnMs(clock: Clock): number {
  if (clock !== systemClock) return clock.now()
  if (turn === undefined) {
    turn = performance.now()
    // Node runs this when the microtasks of the turn have ended.
    nextTick(endTurn)
  }
  return turn
}
