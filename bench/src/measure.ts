/**
 * Measures two contenders in turn, so that noise hits both alike, and compares
 * medians, so that a single garbage collection does not matter.
 */
import { setImmediate as nextTurn } from 'node:timers/promises'

/** Works for one round and returns the result in the unit of its bench. */
export type Round = () => number | Promise<number>

type MaybePromise<T> = T | Promise<T>

/** Passed to a bench while it prepares. */
export interface Preparation {
  /** Aborted when the bench is interrupted. Rounds are short; longer work has to check it. */
  readonly signal: AbortSignal
  /** Registers a clean-up that runs when the bench is over, also after an error, in reverse order. */
  atEnd(close: () => MaybePromise<unknown>): void
}

interface Described {
  name: string
  /** The measured quantity, in one line. */
  what: string
  /** Default: 5 rounds to warm up, then 31 that count. */
  rounds?: { warmUp: number; counted: number }
}

interface Pair {
  ours: Round
  peer: Round
}

type Cost = 'ns/op' | 'ms' | 'bytes'
const COSTS: readonly string[] = ['ns/op', 'ms', 'bytes'] satisfies Cost[]

/** Spillway compared with a peer. */
export interface Comparison extends Described {
  /** Required ratio to the peer: Spillway has to be at least this many times as fast. */
  target: number
  peerName: string
  /** `lower` for a cost, `higher` for a rate. */
  unit: Cost | 'decisions/s' | 'jobs/s' | 'calls/s' | 'requests/s' | 'kB/s'
  /** Creates both contenders; this time does not count. With several pairs, the worst is reported. */
  prepare(preparation: Preparation): MaybePromise<Pair | readonly Pair[]>
}

/** A figure without a peer. */
export interface Figure extends Described {
  /** Required value, if there is one. */
  target?: { atLeast: number } | { atMost: number }
  unit: string
  prepare(preparation: Preparation): MaybePromise<Round>
}

export type Bench = Comparison | Figure

export interface Suite {
  name: string
  what: string
  benches: readonly Bench[]
}

interface Compared {
  ours: number
  peer: number
  peerName: string
  unit: string
  ratio: number
}

export type Measured = Compared | { value: number; unit: string }

const DEFAULT_ROUNDS = { warmUp: 5, counted: 31 }

/** Checks between two rounds whether the signal is aborted. */
export async function measure(bench: Bench, signal: AbortSignal): Promise<Measured> {
  const closers: (() => MaybePromise<unknown>)[] = []
  const preparation = { signal, atEnd: (close: () => unknown) => closers.push(close) }
  try {
    return await ('peerName' in bench ? compare(bench, preparation) : figureOf(bench, preparation))
  } finally {
    for (const close of closers.toReversed()) await close()
  }
}

async function compare(bench: Comparison, preparation: Preparation): Promise<Measured> {
  const pairs = [await bench.prepare(preparation)].flat()
  const all: Compared[] = []
  for (const pair of pairs) all.push(await comparePair(pair, bench, preparation.signal))
  return all.reduce((worst, each) => (each.ratio < worst.ratio ? each : worst))
}

async function comparePair(
  { ours, peer }: Pair,
  bench: Comparison,
  signal: AbortSignal,
): Promise<Compared> {
  const [ourSamples, peerSamples] = await takeTurns([ours, peer], bench, signal)
  const [our, their] = [median(ourSamples!), median(peerSamples!)]
  const isCost = COSTS.includes(bench.unit)
  const decimals = bench.unit === 'ns/op' || bench.unit === 'ms' ? 1 : 0
  return {
    ours: rounded(our, decimals),
    peer: rounded(their, decimals),
    peerName: bench.peerName,
    unit: bench.unit,
    ratio: rounded(isCost ? their / our : our / their, 2),
  }
}

async function figureOf(bench: Figure, preparation: Preparation): Promise<Measured> {
  const round = await bench.prepare(preparation)
  const [samples] = await takeTurns([round], bench, preparation.signal)
  const value = median(samples!)
  return { value: rounded(value, value < 100 ? 4 : 0), unit: bench.unit }
}

/** The samples of each contender. */
async function takeTurns(
  contenders: readonly Round[],
  { rounds: { warmUp, counted } = DEFAULT_ROUNDS }: Described,
  signal: AbortSignal,
): Promise<number[][]> {
  const all = contenders.map((round) => ({ round, samples: [] as number[] }))
  for (let number = -warmUp; number < counted; number++) {
    // The second contender may pay for garbage of the first, so they alternate.
    for (const { round, samples } of number % 2 === 0 ? all : all.toReversed()) {
      await nextTurn()
      signal.throwIfAborted()
      const sample = await round()
      if (number >= 0) samples.push(sample)
    }
  }
  return all.map(({ samples }) => samples)
}

/** A round of asynchronous operations, one after the other. Each returns 1 when it has run. */
export function awaitEach(times: number, operation: () => Promise<number>): Round {
  return async () => {
    const startMs = performance.now()
    let done = 0
    for (let i = 0; i < times; i++) done += await operation()
    return nsPerOperation(startMs, times, done)
  }
}

/** A round of asynchronous operations that have to fail with this error code. */
export function catchEach(times: number, operation: () => Promise<unknown>, code: string): Round {
  return async () => {
    const startMs = performance.now()
    let done = 0
    for (let i = 0; i < times; i++) {
      try {
        await operation()
      } catch (error) {
        if ((error as { code?: unknown }).code === code) done++
      }
    }
    return nsPerOperation(startMs, times, done)
  }
}

/** A round of synchronous operations. */
export function callEach(times: number, operation: () => number): Round {
  return () => {
    const startMs = performance.now()
    let done = 0
    for (let i = 0; i < times; i++) done += operation()
    return nsPerOperation(startMs, times, done)
  }
}

/** Converts a round's nanoseconds per operation to operations per second. */
export function perSecond(round: Round): Round {
  return async () => 1e9 / (await round())
}

/** Counting the operations keeps the compiler from dropping them and a broken contender from winning. */
function nsPerOperation(startMs: number, times: number, done: number): number {
  const elapsedMs = performance.now() - startMs
  if (done !== times) throw new Error(`${times - done} of ${times} operations did not run`)
  return (elapsedMs * 1e6) / times
}

export function median(samples: readonly number[]): number {
  const sorted = samples.toSorted((a, b) => a - b)
  const middle = sorted.length >> 1
  return sorted.length % 2 === 1 ? sorted[middle]! : (sorted[middle - 1]! + sorted[middle]!) / 2
}

function rounded(value: number, decimals: number): number {
  return Number(value.toFixed(decimals))
}
