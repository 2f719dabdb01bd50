/** Chance, injected: a number from 0 up to but not including 1. */
export type Random = () => number

export const systemRandom: Random = Math.random

/**
 * A repeatable stream of chance: the same seed gives the same numbers on every machine. (Mulberry32:
 * 32 bits of state, even enough for jitter and simulation; nothing here is for secrets.)
 */
export function createRandom(seed: number): Random {
  let state = seed | 0
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
}
