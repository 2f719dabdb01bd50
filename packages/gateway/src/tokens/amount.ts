/** A number of tokens or answers in a request. Undefined if it is negative, infinite or not a number. */
export function amountIn(value: unknown): number | undefined {
  const counts = typeof value === 'number' && value >= 0 && value <= Number.MAX_SAFE_INTEGER
  return counts ? value : undefined
}

/**
 * The largest limit among these fields, because vendors differ in which of them they obey. Infinite if one of them is
 * no amount, such as -1, which some vendors take as no limit. Undefined if none is set.
 */
export function largestOf(
  values: ReadonlyMap<string, unknown>,
  names: readonly string[],
): number | undefined {
  const limits = names.flatMap((name) =>
    values.has(name) ? (amountIn(values.get(name)) ?? Number.POSITIVE_INFINITY) : [],
  )
  return limits.length === 0 ? undefined : Math.max(...limits)
}
