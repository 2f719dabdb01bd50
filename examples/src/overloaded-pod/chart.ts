/**
 * Offered load and goodput over time: one column per slice of the act. The filled part is goodput, the shaded part
 * offered load.
 */
import type { Line, Piece } from './paint.js'
import { ACT_MS, CAPACITY, PHASES } from './scenario.js'
import { goodputIn, offeredIn, type Visit } from './visits.js'

const ROWS = 8
const PER_ROW = PHASES.overload.offered / ROWS
const AXIS_WIDTH = 8
const MOST_COLUMNS = 44
const FEWEST_COLUMNS = 11

/** A cell filled from below, by eighths. */
const EIGHTHS = [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█']

/** Columns the chart takes at most. */
export const CHART_WIDTH = AXIS_WIDTH + MOST_COLUMNS

interface Slice {
  offered: number
  goodput: number
}

export function chart(visits: readonly Visit[], elapsedMs: number, width: number): Line[] {
  const columns = Math.min(Math.max(width - AXIS_WIDTH, FEWEST_COLUMNS), MOST_COLUMNS)
  const slices = sliceUp(visits, elapsedMs, columns)
  const lines: Line[] = []
  for (let row = ROWS - 1; row >= 0; row--) {
    const cells = Array.from({ length: columns }, (_, column) => cell(slices[column], row))
    lines.push([axis(row), ...cells])
  }
  return [...lines, [{ text: `   0/s └${'─'.repeat(columns)}`, colour: 'dim' }], phases(columns)]
}

/** The slices up to now. */
function sliceUp(visits: readonly Visit[], elapsedMs: number, columns: number): Slice[] {
  const sliceMs = ACT_MS / columns
  const begun = Math.min(columns, Math.ceil(elapsedMs / sliceMs))
  return Array.from({ length: begun }, (_, index) => {
    const startMs = index * sliceMs
    // The current slice is incomplete, so its counts are scaled to its duration.
    const endMs = Math.min(startMs + sliceMs, Math.max(elapsedMs, startMs + 1))
    const span = { startMs, endMs }
    return { offered: offeredIn(visits, span), goodput: goodputIn(visits, span) }
  })
}

function cell(slice: Slice | undefined, row: number): Piece {
  const { offered, goodput } = slice ?? { offered: 0, goodput: 0 }
  const eighths = Math.round((goodput / PER_ROW - row) * 8)
  if (eighths > 0) return { text: EIGHTHS[Math.min(8, eighths)] as string, colour: 'green' }
  if (offered / PER_ROW - row >= 0.5) return { text: '░', colour: 'red' }
  // The capacity is at the lower edge of this row.
  return row === CAPACITY / PER_ROW ? { text: '▁', colour: 'dim' } : { text: ' ' }
}

function axis(row: number): Piece {
  const top = (row + 1) * PER_ROW
  const marked = top === CAPACITY || row === ROWS - 1
  return { text: marked ? `${`${top}/s`.padStart(6)} ┤` : '       │', colour: 'dim' }
}

function phases(columns: number): Line {
  const names = Object.values(PHASES).map(({ name, startMs, endMs }) => {
    const width = column(endMs, columns) - column(startMs, columns)
    return name.slice(0, Math.max(0, width - 1)).padEnd(width)
  })
  return [{ text: ' '.repeat(AXIS_WIDTH) + names.join(''), colour: 'dim' }]
}

function column(atMs: number, columns: number): number {
  return Math.round((atMs / ACT_MS) * columns)
}
