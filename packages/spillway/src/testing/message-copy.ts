/** Copies a message, so that neither end sees later changes of the other. For plain data only. */
export function wireCopy<T>(value: T): T {
  if (typeof value !== 'object' || value === null) return value
  if (Array.isArray(value)) return value.map(wireCopy) as T
  const original = value as Record<string, unknown>
  const copy: Record<string, unknown> = {}
  for (const key of Object.keys(original)) copy[key] = wireCopy(original[key])
  return copy as T
}
