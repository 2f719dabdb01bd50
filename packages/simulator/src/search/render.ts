/** The result of a search as a few lines in a terminal. */
import { formatCount, formatMs, formatShare } from '../report/format.js'
import { RECOVERED, type StabilitySearch } from './search.js'

const TRIGGERS = {
  slow: 'the vendor takes longer',
  fail: 'a share of the vendor’s calls fails',
  load: 'clients send more requests',
} as const

/** Renders the result of a search as text for a terminal. */
export function renderSearch(search: StabilitySearch): string {
  const { name, seed, trigger, maxSize, maxDurationMs, recoverMs, servedBefore, trials } = search
  const size = (value: number) => (trigger === 'fail' ? formatShare(value) : `${value.toFixed(1)}×`)
  const lines = [
    `${name}: ${TRIGGERS[trigger]}, up to ${size(maxSize)} and ${formatMs(maxDurationMs)}; ${trials} runs, seed ${seed}`,
    `Recovered: ${formatShare(RECOVERED)} of the good answers of the same run without a trigger, ${formatMs(recoverMs)} after its end.`,
    `Served without a trigger: ${formatShare(servedBefore)}.`,
    '',
  ]
  if (search.stable) {
    lines.push('The fleet recovers from every trigger in this range.')
    return `${lines.join('\n')}\n`
  }
  lines.push('Smallest trigger from which the fleet does not recover, by duration:', '')
  lines.push(...boundaryTable(search, size), '')
  const { example, safeLoad, changes } = search
  if (example !== null) {
    const { before, after } = example
    lines.push(
      `At ${size(example.size)} for ${formatMs(example.durationMs)}: ${formatCount(Math.round(before))} good answers a second without it, ${formatCount(Math.round(after))} after it.`,
    )
  }
  if (safeLoad !== null) {
    lines.push(
      safeLoad === 0
        ? 'No load was found at which the fleet recovers from all triggers.'
        : `Up to ${formatShare(safeLoad)} of the load the fleet recovers from all triggers of ${formatMs(maxDurationMs)}.`,
    )
  }
  lines.push('')
  const [best, ...others] = changes
  if (best === undefined) {
    lines.push('No single change of the list removes this. Lower the load, or combine changes.')
    return `${lines.join('\n')}\n`
  }
  lines.push(
    `Smallest change that removes it: ${best.path} ${textOf(best.from)} → ${textOf(best.to)}`,
    '',
  )
  lines.push(`  ${best.yaml}`)
  if (others.length > 0) {
    lines.push('', 'Other changes of the same step:')
    lines.push(...others.map(({ yaml }) => `  ${yaml}`))
  }
  return `${lines.join('\n')}\n`
}

function boundaryTable({ boundary }: StabilitySearch, size: (value: number) => string): string[] {
  const loads = [...new Set(boundary.map(({ load }) => load))]
  const durations = [...new Set(boundary.map(({ durationMs }) => durationMs))]
  const cell = (load: number, durationMs: number) => {
    const found = boundary.find((each) => each.load === load && each.durationMs === durationMs)
    return found === undefined || found.size === null ? 'recovers' : size(found.size)
  }
  const rows = [
    ['duration', ...loads.map((load) => `load ${formatShare(load)}`)],
    ...durations.map((durationMs) => [
      formatMs(durationMs),
      ...loads.map((load) => cell(load, durationMs)),
    ]),
  ]
  const widths = rows[0]!.map((_, column) => Math.max(...rows.map((row) => row[column]!.length)))
  return rows.map(
    (row) => `  ${row.map((text, column) => text.padStart(widths[column]!)).join('  ')}`,
  )
}

function textOf(value: unknown): string {
  return value === undefined ? 'not set' : String(value)
}
