/** A number of tokens, or of answers, as a request says it; nothing, if it is none that anybody could count. */
export function amountIn(value: unknown): number | undefined {
  const counts = typeof value === 'number' && value >= 0 && value <= Number.MAX_SAFE_INTEGER
  return counts ? value : undefined
}
