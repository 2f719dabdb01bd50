/** Copies a message, so that neither end sees later changes of the other. For plain data only. */
export function copyMessage<T>(value: T): T {
  if (typeof value !== 'object' || value === null) return value
  if (Array.isArray(value)) return value.map(copyMessage) as T
  const original = value as Record<string, unknown>
  const copy: Record<string, unknown> = {}
  for (const key of Object.keys(original)) copy[key] = copyMessage(original[key])
  return copy as T
}
