/** Durations as users write them: `250` (milliseconds), `'100ms'`, `'5s'`, `'1.5m'`, `'2h'`. */

const UNIT_MS = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 } as const

/** Milliseconds as a number, or text such as `'5s'` or `'1m'`. */
export type Duration = number | `${number}${keyof typeof UNIT_MS}`

/** For JSON Schema. */
export const DURATION_PATTERN = '^\\s*(\\d+(?:\\.\\d+)?)\\s*(ms|s|m|h|d)\\s*$'

const WRITTEN = new RegExp(DURATION_PATTERN)

/** Milliseconds, or undefined if the value is no duration. */
export function parseDuration(value: unknown): number | undefined {
  if (typeof value === 'number') return Number.isNaN(value) ? undefined : value
  if (typeof value !== 'string') return undefined
  const [, amount, unit] = WRITTEN.exec(value) ?? []
  if (amount === undefined || unit === undefined) return undefined
  return Number(amount) * UNIT_MS[unit as keyof typeof UNIT_MS]
}
