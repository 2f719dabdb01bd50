/**
 * Takes the time of two contenders in turn, so that a noisy neighbour hits both alike, and goes by
 * the medians, so that a single garbage collection counts for neither.
 */
import { setImmediate as nextTurn } from 'node:timers/promises'

/** Does `times` operations and answers with the nanoseconds one of them took. */
export type Round = (times: number) => number | Promise<number>

/** Spillway against something that does the same. */
export interface Comparison {
  name: string
  /** What is compared, in one line. */
  what: string
  /** How many times as fast as the peer we want to be, at least. */
  target: number
  peerName: string
  /** Operations in a round. */
  times: number
  /** Makes both contenders; the time this takes does not count. */
  prepare(): { ours: Round; peer: Round; close?: () => void }
}

/** A figure that stands for itself. More is better. */
export interface Figure {
  name: string
  what: string
  /** How much we want, at least. */
  target: number
  unit: string
  /** One round; answers in `unit`. */
  round(): Promise<number>
}

export type Bench = Comparison | Figure

export interface Suite {
  name: string
  what: string
  benches: readonly Bench[]
}

export type Measured =
  | { ours: number; peer: number; peerName: string; unit: string; ratio: number }
  | { value: number; unit: string }

const WARM_UP_ROUNDS = 5
const ROUNDS = 31

/** Gives up between two rounds when the signal is aborted. */
export async function measure(bench: Bench, signal: AbortSignal): Promise<Measured> {
  if ('round' in bench) {
    const only: Contender = { round: () => bench.round(), samples: [] }
    await takeTurns([only], signal)
    return { value: rounded(median(only.samples), 0), unit: bench.unit }
  }
  const { ours, peer, close } = bench.prepare()
  const our: Contender = { round: () => ours(bench.times), samples: [] }
  const their: Contender = { round: () => peer(bench.times), samples: [] }
  try {
    await takeTurns([our, their], signal)
  } finally {
    close?.()
  }
  const [ourNs, peerNs] = [median(our.samples), median(their.samples)]
  return {
    ours: rounded(ourNs, 1),
    peer: rounded(peerNs, 1),
    peerName: bench.peerName,
    unit: 'ns/op',
    ratio: rounded(peerNs / ourNs, 2),
  }
}

interface Contender {
  round: () => number | Promise<number>
  samples: number[]
}

async function takeTurns(contenders: readonly Contender[], signal: AbortSignal): Promise<void> {
  for (let round = -WARM_UP_ROUNDS; round < ROUNDS; round++) {
    // Who goes second may have to clear up after the first, so they alternate.
    for (const contender of round % 2 === 0 ? contenders : contenders.toReversed()) {
      await nextTurn()
      signal.throwIfAborted()
      const sample = await contender.round()
      if (round >= 0) contender.samples.push(sample)
    }
  }
}

/** A round of asynchronous operations, one after the other. Each answers 1 when it did its work. */
export function awaitEach(operation: () => Promise<number>): Round {
  return async (times) => {
    const startMs = performance.now()
    let done = 0
    for (let i = 0; i < times; i++) done += await operation()
    return nsPerOperation(startMs, times, done)
  }
}

/** The same for operations that fail, as they should, with an error of this code. */
export function catchEach(operation: () => Promise<unknown>, code: string): Round {
  return async (times) => {
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

/** The same for synchronous operations. */
export function callEach(operation: () => number): Round {
  return (times) => {
    const startMs = performance.now()
    let done = 0
    for (let i = 0; i < times; i++) done += operation()
    return nsPerOperation(startMs, times, done)
  }
}

/** Counting what was done keeps the compiler from dropping it, and a broken contender from winning. */
function nsPerOperation(startMs: number, times: number, done: number): number {
  const elapsedMs = performance.now() - startMs
  if (done !== times)
    throw new Error(`${times - done} of ${times} operations did not do their work`)
  return (elapsedMs * 1e6) / times
}

function median(samples: readonly number[]): number {
  const sorted = samples.toSorted((a, b) => a - b)
  const middle = sorted.length >> 1
  return sorted.length % 2 === 1 ? sorted[middle]! : (sorted[middle - 1]! + sorted[middle]!) / 2
}

function rounded(value: number, decimals: number): number {
  return Number(value.toFixed(decimals))
}
