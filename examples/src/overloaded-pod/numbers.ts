/** Formats figures. */

export function count(value: number): string {
  return Math.round(value).toLocaleString('en-US')
}

export function perSecond(value: number): string {
  return `${count(value)}/s`
}

export function percent(fraction: number): string {
  const value = fraction * 100
  return value > 0 && value < 1 ? '< 1 %' : `${Math.round(value)} %`
}

export function milliseconds(value: number): string {
  if (value < 0.1) return '< 0.1 ms'
  return value < 10 ? `${value.toFixed(1)} ms` : `${count(value)} ms`
}

export function seconds(valueMs: number): string {
  return `${(valueMs / 1_000).toFixed(1)} s`
}
