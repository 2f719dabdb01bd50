/** A number of tokens or answers in a request. Undefined if it is negative, infinite or not a number. */
export function amountIn(value: unknown): number | undefined {
  const counts = typeof value === 'number' && value >= 0 && value <= Number.MAX_SAFE_INTEGER
  return counts ? value : undefined
}

/**
 * The largest limit among these fields, because vendors differ in which of them they obey. Undefined if none is set, or
 * one of them is no amount, such as -1, which some vendors take as no limit.
 */
export function largestOf(
  values: ReadonlyMap<string, unknown>,
  names: readonly string[],
): number | undefined {
  const limits = names.filter((name) => values.has(name)).map((name) => amountIn(values.get(name)))
  const known = limits.filter((limit) => limit !== undefined)
  return known.length > 0 && known.length === limits.length ? Math.max(...known) : undefined
}
