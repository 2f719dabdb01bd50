/**
 * `npm run test:long` sets SPILLWAY_TEST_LONG. Random histories then run with many more seeds and
 * steps than in `npm test`, where they only have to notice what breaks often.
 */
const isLong = process.env.SPILLWAY_TEST_LONG !== undefined

/** `npm run mutate` repeats a test for each mutant, so its random histories are short. */
const SHORT = process.env.SPILLWAY_MUTATION_TESTS === undefined ? 1 : 0.1

/** Runs of a property in `npm test` and in `npm run test:long`. */
export function numberOfRuns(usual: number, long = usual): number {
  return Math.ceil(SHORT * usualOrLong(usual, long))
}

/** The first value in `npm test`, the second one in `npm run test:long`. */
export function usualOrLong<T>(usual: T, long: T): T {
  return isLong ? long : usual
}
