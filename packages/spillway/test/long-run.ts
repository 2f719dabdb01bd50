/**
 * `npm run test:long` sets SPILLWAY_TEST_LONG. Random histories then run with many more seeds and
 * steps than in `npm test`, where they only have to notice what breaks often.
 */
const isLong = process.env.SPILLWAY_TEST_LONG !== undefined

/** The first value in `npm test`, the second one in `npm run test:long`. */
export function usualOrLong<T>(usual: T, long: T): T {
  return isLong ? long : usual
}
