/** Renders a simulation as text for a terminal. */
import type { RunSummary } from '../measure/summary.js'
import type { Simulation } from '../run/simulate.js'
import { timeLabel } from './chart.js'
import { formatCount, formatMetric, formatMs, formatPromise, formatShare } from './format.js'

/** Renders a simulation as text for a terminal. */
export function renderText(simulation: Simulation): string {
  const { name, title, seed, pods, durationMs, checks, passed, naiveFails } = simulation
  const { spillway, naive } = simulation
  const rows = [
    ['', 'with Spillway', 'without'],
    ...figures(spillway).map(([what, value], index) => [what, value, figures(naive)[index]![1]]),
  ] as string[][]
  const promises = checks.map((check) => [
    `${check.spillway.holds ? '✓' : '✗'} ${check.says}`,
    formatMetric(check.metric, check.spillway.value),
    `${formatMetric(check.metric, check.naive.value)} ${check.naive.holds ? '✓' : '✗'}`,
    formatPromise(check),
  ])
  const lines = [
    `${name}: ${title}`,
    `${pods} ${pods === 1 ? 'pod' : 'pods'}, ${timeLabel(durationMs, durationMs)} of virtual time, seed ${seed}`,
    '',
    ...table([...rows, ...promises]),
    '',
    `refused with Spillway: ${refusals(spillway)}`,
    passed ? 'All promises hold with Spillway.' : 'NOT all promises hold with Spillway.',
    naiveFails ? 'Without it some do not.' : 'They hold without it, too.',
  ]
  return `${lines.join('\n')}\n`
}

function figures({ totals }: RunSummary): [string, string][] {
  const { requests, served, vendorCalls, throttled, storeCommands, p50Ms, p99Ms } = totals
  const time = (ms: number | null) => (ms === null ? 'none' : formatMs(ms))
  return [
    ['requests', formatCount(requests)],
    ['served in time', `${formatCount(served)} (${formatShare(served / requests)})`],
    ['calls at the vendor', formatCount(vendorCalls)],
    ['answers of 429', formatCount(throttled)],
    ['commands at the store', formatCount(storeCommands)],
    ['median, 99th percentile', `${time(p50Ms)}, ${time(p99Ms)}`],
  ]
}

function refusals({ totals }: RunSummary): string {
  const each = Object.entries(totals.refused).map(
    ([code, count]) => `${code} ${formatCount(count)}`,
  )
  return each.length === 0 ? 'none' : each.join(', ')
}

/** Aligns the first column to the left and the others to the right. */
function table(rows: readonly string[][]): string[] {
  const columns = Math.max(...rows.map((row) => row.length))
  const widths = Array.from({ length: columns }, (_, column) =>
    Math.max(...rows.map((row) => row[column]?.length ?? 0)),
  )
  return rows.map((row) =>
    row
      .map((cell, column) => {
        if (column === 0) return cell.padEnd(widths[0]!)
        return column === 3 ? cell : cell.padStart(widths[column]!)
      })
      .join('  ')
      .trimEnd(),
  )
}
