/** Draws the breaker's states as a strip over time. */
import type { RunSummary } from '../measure/summary.js'
import { timeLabel } from './chart.js'

const WORDS = {
  closed: 'closed: calls go through',
  open: 'open: calls are refused at once',
  'half-open': 'half-open: a few probes find out',
} as const

export function breakerStrip({ breaker }: RunSummary, durationMs: number): string {
  if (breaker.length === 0) return ''
  const changes = [{ atMs: 0, state: 'closed' as const }, ...breaker]
  const parts = changes.map(({ atMs, state }, index) => {
    const endMs = Math.min(durationMs, changes[index + 1]?.atMs ?? durationMs)
    const width = Math.max(0, ((endMs - atMs) / durationMs) * 100)
    const title = `${state} from ${timeLabel(atMs, durationMs)} to ${timeLabel(endMs, durationMs)}`
    return `<span class="${state}" style="width:${width.toFixed(3)}%" title="${title}"></span>`
  })
  const legend = (['closed', 'open', 'half-open'] as const)
    .map((state) => `<li><i class="swatch ${state}"></i>${WORDS[state]}</li>`)
    .join('')
  return `<section><h2>The breaker of the fleet</h2>
<p class="hint">One verdict for all pods, from 0 to ${timeLabel(durationMs, durationMs)}. Hover a part for its times.</p>
<div class="strip">${parts.join('')}</div><ul class="legend">${legend}</ul></section>`
}
