/** Draws a few series over time as inline SVG. */
import { escapeHtml } from './format.js'

export interface Line {
  readonly name: string
  readonly colour: string
  readonly values: readonly (number | null)[]
  /** Drawn as an area on top of those before it. */
  readonly stacked?: boolean
  /** A limit, not a measurement. */
  readonly dashed?: boolean
}

export interface ChartOptions {
  readonly lines: readonly Line[]
  readonly durationMs: number
  /** Top of the scale: shared by the two charts of a row, so that they can be compared. */
  readonly top: number
  readonly format: (value: number) => string
  readonly label: string
}

const WIDTH = 440
const HEIGHT = 170
const LEFT = 46
const RIGHT = 8
const TOP = 8
const BOTTOM = 22
const INNER_WIDTH = WIDTH - LEFT - RIGHT
const INNER_HEIGHT = HEIGHT - TOP - BOTTOM

export function topOf(lines: readonly Line[]): number {
  const stacked = lines.filter((line) => line.stacked)
  const length = Math.max(0, ...lines.map(({ values }) => values.length))
  let most = 0
  for (let at = 0; at < length; at++) {
    most = Math.max(
      most,
      stacked.reduce((sum, { values }) => sum + (values[at] ?? 0), 0),
      ...lines.filter((line) => !line.stacked).map(({ values }) => values[at] ?? 0),
    )
  }
  return most
}

export function chart({ lines, durationMs, top, format, label }: ChartOptions): string {
  const scale = niceTop(top)
  const y = (value: number) => TOP + INNER_HEIGHT * (1 - Math.min(value, scale) / scale)
  const parts = [grid(scale, y, format), timeAxis(durationMs)]
  let base: number[] | undefined
  for (const line of lines) {
    if (line.stacked) {
      const sums = line.values.map((value, at) => (value ?? 0) + (base?.[at] ?? 0))
      parts.push(area(line.colour, sums, base, y))
      base = sums
    } else {
      parts.push(path(line, y))
    }
  }
  const data = {
    durationMs,
    lines: lines.map(({ name, values }) => ({ name, values: brief(values) })),
  }
  return `<svg class="chart" viewBox="0 0 ${WIDTH} ${HEIGHT}" role="img" aria-label="${escapeHtml(label)}" data-series="${escapeHtml(JSON.stringify(data))}" data-left="${LEFT}" data-width="${INNER_WIDTH}">${parts.join('')}<line class="cursor" y1="${TOP}" y2="${TOP + INNER_HEIGHT}"/></svg>`
}

/** Values in the tooltip, rounded to three digits. */
function brief(values: readonly (number | null)[]): (number | null)[] {
  return values.map((value) => (value === null ? null : Number(value.toPrecision(3))))
}

function x(at: number, length: number): number {
  return LEFT + (INNER_WIDTH * (at + 0.5)) / length
}

function path({ values, colour, dashed }: Line, y: (value: number) => number): string {
  let drawn = ''
  let broken = true
  for (const [at, value] of values.entries()) {
    if (value === null) {
      broken = true
      continue
    }
    drawn += `${broken ? 'M' : 'L'}${x(at, values.length).toFixed(1)} ${y(value).toFixed(1)}`
    broken = false
  }
  const style = dashed ? 'line limit' : 'line'
  return `<path class="${style} ${colour}" d="${drawn}"/>`
}

function area(
  colour: string,
  sums: readonly number[],
  base: readonly number[] | undefined,
  y: (value: number) => number,
): string {
  const point = (value: number, at: number) =>
    `${x(at, sums.length).toFixed(1)} ${y(value).toFixed(1)}`
  const upper = sums.map(point)
  const lower = sums.map((_, at) => point(base?.[at] ?? 0, at)).reverse()
  return `<path class="area ${colour}" d="M${[...upper, ...lower].join('L')}Z"/>`
}

function grid(
  scale: number,
  y: (value: number) => number,
  format: (value: number) => string,
): string {
  return [0, 0.25, 0.5, 0.75, 1]
    .map((part) => {
      const at = y(scale * part).toFixed(1)
      const text =
        part === 0.25 || part === 0.75
          ? ''
          : `<text class="tick" x="${LEFT - 6}" y="${at}" dy="0.32em" text-anchor="end">${escapeHtml(format(scale * part))}</text>`
      return `<line class="grid" x1="${LEFT}" x2="${WIDTH - RIGHT}" y1="${at}" y2="${at}"/>${text}`
    })
    .join('')
}

function timeAxis(durationMs: number): string {
  return [0, 0.25, 0.5, 0.75, 1]
    .map((part) => {
      const at = LEFT + INNER_WIDTH * part
      const anchor = part === 0 ? 'start' : part === 1 ? 'end' : 'middle'
      return `<text class="tick" x="${at}" y="${HEIGHT - 5}" text-anchor="${anchor}">${timeLabel(durationMs * part, durationMs)}</text>`
    })
    .join('')
}

export function timeLabel(ms: number, durationMs: number): string {
  if (durationMs >= 1_800_000) return `${Number((ms / 60_000).toFixed(1))} min`
  return `${Number((ms / 1_000).toFixed(1))} s`
}

/** The next round number that is easy to divide by four. */
function niceTop(most: number): number {
  if (!(most > 0)) return 1
  const power = 10 ** Math.floor(Math.log10(most))
  const step = [1, 1.2, 1.6, 2, 2.4, 3.2, 4, 6, 8, 10].find((each) => each * power >= most * 1.001)
  return (step ?? 12) * power
}
