/** Formats figures: short, with a width that changes as little as possible. */

const WHOLE = new Intl.NumberFormat('en')
const SHORT = new Intl.NumberFormat('en', { notation: 'compact', maximumFractionDigits: 1 })

/** 0, 0.4, 12, 1,234, 56.7K */
export function formatCount(value: number): string {
  if (!Number.isFinite(value)) return '∞'
  if (value !== 0 && Math.abs(value) < 10 && !Number.isInteger(value)) return value.toFixed(1)
  return Math.abs(value) < 10_000 ? WHOLE.format(Math.round(value)) : SHORT.format(value)
}

/** 0.4 ms, 12 ms, 1.2 s, 3 min 05 s, 2 h 10 min */
export function formatMs(ms: number): string {
  if (!Number.isFinite(ms)) return '∞'
  if (ms < 10) return `${Number(ms.toFixed(1))} ms`
  if (ms < 1_000) return `${Math.round(ms)} ms`
  if (ms < 60_000) return `${Number((ms / 1_000).toFixed(1))} s`
  return formatLong(Math.round(ms / 1_000))
}

/** A duration in whole seconds, for countdowns: 12 s, 3 min 05 s. */
export function formatSeconds(ms: number): string {
  const seconds = Math.max(0, Math.ceil(ms / 1_000))
  return seconds < 60 ? `${seconds} s` : formatLong(seconds)
}

function formatLong(seconds: number): string {
  const minutes = Math.floor(seconds / 60)
  const rest = seconds % 60
  if (minutes < 60) {
    return rest === 0 ? `${minutes} min` : `${minutes} min ${String(rest).padStart(2, '0')} s`
  }
  const hours = Math.floor(minutes / 60)
  if (hours < 48) return minutes % 60 === 0 ? `${hours} h` : `${hours} h ${minutes % 60} min`
  return `${Math.floor(hours / 24)} days`
}

export function formatShare(share: number): string {
  if (!Number.isFinite(share)) return '0 %'
  const percent = share * 100
  return percent > 0 && percent < 10 ? `${percent.toFixed(1)} %` : `${Math.round(percent)} %`
}

export function formatTime(at: number): string {
  return new Date(at).toLocaleTimeString('en-GB')
}

export function formatPreciseTime(at: number): string {
  return `${formatTime(at)}.${String(Math.floor(at % 1_000)).padStart(3, '0')}`
}

/** Formats a count with its noun: one call, two calls. */
export function countOf(count: number, one: string, many = `${one}s`): string {
  return `${formatCount(count)} ${count === 1 ? one : many}`
}

/** Splits a camel-case name such as `retryAfterMs` into words: retry after. */
export function spellOut(key: string): string {
  return key
    .replace(/Ms$/, '')
    .replace(/([a-z])([A-Z])/g, '$1 $2')
    .toLowerCase()
}

/** A number with a name: those that end in `Ms` are durations. */
export function formatNumber(key: string, value: number | string | boolean): string {
  if (typeof value === 'boolean') return value ? 'yes' : 'no'
  if (typeof value === 'string') return value
  return key.endsWith('Ms') ? formatMs(value) : formatCount(value)
}
