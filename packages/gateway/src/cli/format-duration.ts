/** Formats durations for people. */
const UNITS = [
  ['d', 86_400_000],
  ['h', 3_600_000],
  ['m', 60_000],
  ['s', 1_000],
] as const

/** Exact, in the largest unit that needs no fraction. */
export function formatDuration(ms: number): string {
  const [unit, unitMs] = UNITS.find(([, each]) => ms >= each && ms % each === 0) ?? ['ms', 1]
  return `${Math.round(ms / unitMs)}${unit}`
}

/** Rounded, in the largest unit that fits at least once. */
export function formatRoughDuration(ms: number): string {
  const [unit, unitMs] = UNITS.find(([, each]) => ms >= each) ?? ['ms', 1]
  return `${Math.round(ms / unitMs)}${unit}`
}
