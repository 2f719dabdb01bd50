/** Measures decisions per second of a limiter. */
// The global `performance` is a getter, and the loops below read the time before every decision.
import { performance } from 'node:perf_hooks'
import type { Round } from './measure.js'

/** Requests one decision of a limiter, and reads whether it was allowed. */
export interface Contender<T> {
  ask(): Promise<T>
  isAllowed(answer: T): boolean
}

const ROUND_MS = 300

/** Runs `callers` loops that each request the next decision after the last one. Returns the number of decisions. */
export async function decide<T>(callers: number, contender: Contender<T>): Promise<number> {
  const endMs = performance.now() + ROUND_MS
  let decisions = 0
  const caller = async () => {
    while (performance.now() < endMs) {
      if (!contender.isAllowed(await contender.ask())) throw new Error('a request was refused')
      decisions++
    }
  }
  await Promise.all(Array.from({ length: callers }, caller))
  return decisions
}

export function decisionsPerSecond<T>(callers: number, contender: Contender<T>): Round {
  return async () => {
    const startMs = performance.now()
    const decisions = await decide(callers, contender)
    return (decisions * 1_000) / (performance.now() - startMs)
  }
}
