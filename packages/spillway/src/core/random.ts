/** Injected randomness: returns a number from 0 up to but not including 1. */
export type Random = () => number

export const systemRandom: Random = Math.random

/**
 * Creates a source of random numbers that returns the same numbers for the same seed on every machine. The
 * algorithm is Mulberry32 with 32 bits of state, which is even enough for jitter and simulation. Not for
 * secrets.
 *
 * @example
 * const random = createRandom(1)
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
