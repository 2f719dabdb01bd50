/** Formats numbers for people. */
import type { MetricName } from '../scenario/metric-names.js'

const SHARES: readonly MetricName[] = [
  'served',
  'goodput',
  'worstWindow',
  'throttledOfNaive',
  'vendorAtOnce',
]
const DURATIONS: readonly MetricName[] = ['p50Ms', 'p99Ms', 'endedP99Ms', 'recoveredMs']

export function formatMetric(metric: MetricName, value: number): string {
  if (SHARES.includes(metric)) return formatShare(value)
  if (DURATIONS.includes(metric)) return formatMs(value)
  if (metric === 'amplification' || metric === 'attemptsPerCall') return `${value.toFixed(2)}×`
  return formatCount(value)
}

export function formatShare(value: number): string {
  if (!Number.isFinite(value)) return 'none'
  const percent = value * 100
  // Rounds towards the bound, so that 99.96 % is not shown as 100 %.
  const decimals = percent >= 1_000 ? 0 : percent > 99 && percent < 100 ? 2 : 1
  return `${trim(percent.toFixed(decimals))} %`
}

export function formatMs(value: number): string {
  if (!Number.isFinite(value)) return 'never'
  if (value < 1_000) return `${trim(value.toFixed(value < 10 ? 1 : 0))} ms`
  return `${trim((value / 1_000).toFixed(value < 10_000 ? 2 : 0))} s`
}

export function formatCount(value: number): string {
  if (!Number.isFinite(value)) return 'none'
  const whole = Math.abs(value) >= 100 || Number.isInteger(value)
  return whole ? Math.round(value).toLocaleString('en-US') : trim(value.toFixed(value < 10 ? 2 : 1))
}

/** The bounds of an expectation, shown after the value. */
export function formatPromise(check: {
  metric: MetricName
  atLeast?: number
  atMost?: number
}): string {
  const parts: string[] = []
  if (check.atLeast !== undefined) {
    parts.push(`at least ${formatMetric(check.metric, check.atLeast)}`)
  }
  if (check.atMost !== undefined) parts.push(`at most ${formatMetric(check.metric, check.atMost)}`)
  return parts.join(', ')
}

function trim(text: string): string {
  return text.includes('.') ? text.replace(/\.?0+$/, '') : text
}

export function escapeHtml(text: string): string {
  const entities: Record<string, string> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;' }
  return text.replace(/[&<>"]/g, (character) => entities[character]!)
}
