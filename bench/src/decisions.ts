/** Asks for decisions, as many as there are answers to in the time. */
// The global of this name is a getter, and callers look at the time before every question.
import { performance } from 'node:perf_hooks'
import type { Round } from './measure.js'

/** Asks for one decision, and knows a yes when it sees one. */
export interface Contender<T> {
  ask(): Promise<T>
  isAllowed(answer: T): boolean
}

const ROUND_MS = 300

/** Runs `callers` loops that each ask again after every answer. Returns the number of answers. */
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
