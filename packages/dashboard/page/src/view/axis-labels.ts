/** Labels of a chart's axes. */

/** Labels have minutes, so steps are whole minutes. */
export const TIME_STEPS_S = [60, 120, 300, 600, 900, 1_800, 3_600]

/** `seconds`: Unix time. */
export function clockLabel(seconds: number): string {
  const time = { hour: '2-digit', minute: '2-digit' } as const
  return new Date(seconds * 1_000).toLocaleTimeString('en-GB', time)
}

/** Rounded labels may repeat; only the first of them is drawn. */
export function distinct(labels: readonly string[]): string[] {
  return labels.map((label, index) => (labels.indexOf(label) === index ? label : ''))
}
