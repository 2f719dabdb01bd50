/** Lines over time. Drawn only while the chart is on the screen; each line has its own dash. */
import { effect, useSignal } from '@preact/signals'
import { useEffect, useMemo, useRef } from 'preact/hooks'
import UPlot from 'uplot'
import { formatTime } from '../format'
import type { TwoTracks } from '../model/history'
import { hello, historyVersion, pausedAt, serverNow } from '../model/live'
import { paint, range } from '../model/preferences'
import { clockLabel, distinct, TIME_STEPS_S } from './axis-labels'
import type { Tone } from './elements'

export interface Line {
  /** Column of the history. */
  column: string
  label: string
  tone: Tone
  /** Fills the area under the line. */
  filled?: boolean
}

interface ChartProps {
  label: string
  /** Columns of the history; several columns are added. */
  tracks: () => (TwoTracks | undefined)[]
  lines: readonly Line[]
  format: (value: number) => string
  height?: number
}

/** Steps of the history that may be missing between two others. */
const MOST_BRIDGED = 3
const DASHES = [[], [6, 4], [2, 3], [10, 3, 2, 3]]

export function Chart({ label, tracks, lines, format, height = 170 }: ChartProps) {
  const holder = useRef<HTMLDivElement>(null)
  const values = useSignal<readonly (number | null)[]>([])
  const hovered = useSignal<number | undefined>(undefined)
  // Only the inputs of the drawing; `tracks` may be a new function at every render.
  const source = useRef(tracks)
  source.current = tracks
  const shape = useMemo(() => lines, [lines.map(({ column }) => column).join()])

  useEffect(() => {
    const element = holder.current
    if (element === null) return undefined
    let plot: UPlot | undefined
    let onScreen = true
    const draw = () => {
      if (plot === undefined || !onScreen) return
      const { from, to, data } = read(source.current(), shape)
      plot.setData(data as UPlot.AlignedData, false)
      plot.setScale('x', { min: from / 1_000, max: to / 1_000 })
      if (hovered.peek() === undefined) values.value = lastOf(data)
    }
    const onCursor = ({ cursor, data }: UPlot) => {
      const index = cursor.idx
      hovered.value = index == null ? undefined : (data[0][index] as number) * 1_000
      values.value = index == null ? lastOf(data) : data.slice(1).map((row) => row[index] ?? null)
    }
    const stopPaint = effect(() => {
      paint.value
      plot?.destroy()
      plot = new UPlot(
        optionsOf(element, shape, format, height, onCursor),
        [[], ...shape.map(() => [])],
        element,
      )
      draw()
    })
    const stopData = effect(() => {
      historyVersion.value
      range.value
      pausedAt.value
      draw()
    })
    const sizes = new ResizeObserver(() => plot?.setSize({ width: element.clientWidth, height }))
    sizes.observe(element)
    const sight = new IntersectionObserver(([entry]) => {
      onScreen = entry?.isIntersecting ?? true
      draw()
    })
    sight.observe(element)
    return () => {
      stopPaint()
      stopData()
      sizes.disconnect()
      sight.disconnect()
      plot?.destroy()
    }
  }, [shape, height])

  const words = lines.map(({ label }, index) => {
    const value = values.value[index]
    return { label, words: value == null ? '–' : format(value) }
  })
  const spoken = words.map((each) => `${each.label} ${each.words}`).join(', ')
  return (
    <figure class="chart">
      <div
        ref={holder}
        class="chart-plot"
        role="img"
        aria-label={`${label}, ${range.value.words}. Now: ${spoken}`}
      />
      <figcaption class="legend">
        {words.map((each, index) => (
          <span key={each.label} class={`legend-line tone-${lines[index]?.tone}`}>
            <svg width="22" height="8" aria-hidden="true" focusable="false">
              <path
                d="M1 4h20"
                stroke="var(--tone-fill)"
                stroke-width="2.5"
                stroke-dasharray={DASHES[index % DASHES.length]?.join(' ')}
              />
            </svg>
            {each.label} <b>{each.words}</b>
          </span>
        ))}
        <span class="quiet legend-time">
          {hovered.value === undefined ? 'now' : formatTime(hovered.value)}
        </span>
      </figcaption>
    </figure>
  )
}

function read(tracks: readonly (TwoTracks | undefined)[], lines: readonly Line[]) {
  const to = pausedAt.peek() ?? serverNow()
  const from = to - range.peek().ms
  const names = lines.map(({ column }) => column)
  const finePoints = hello.peek()?.keeps.finePoints ?? 0
  const all = tracks
    .filter((each) => each !== undefined)
    .map((each) => each.for(range.peek().ms, finePoints).read(names, from, to))
  const [first, ...others] = all
  if (first === undefined) return { from, to, data: [[], ...names.map(() => [])] }
  for (const other of others) {
    for (let row = 1; row < first.length; row++) addTo(first[row], other[row])
  }
  for (const row of first.slice(1)) bridge(row)
  return { from, to, data: first }
}

/** A late tick leaves its second empty. The line is drawn across that gap. */
function bridge(row: (number | null)[]): void {
  let known = -1
  for (let i = 0; i < row.length; i++) {
    const value = row[i]
    if (value == null) continue
    const steps = i - known
    if (known >= 0 && steps <= MOST_BRIDGED + 1) {
      const from = row[known] as number
      for (let j = 1; j < steps; j++) row[known + j] = from + ((value - from) * j) / steps
    }
    known = i
  }
}

function addTo(row: (number | null)[] = [], more: readonly (number | null)[] = []): void {
  for (let i = 0; i < row.length; i++) {
    const value = more[i]
    if (value != null) row[i] = (row[i] ?? 0) + value
  }
}

/** The newest that is known; the step that has just begun may have nothing yet. */
function lastOf(data: ArrayLike<ArrayLike<number | null | undefined>>): (number | null)[] {
  const last: (number | null)[] = []
  for (let row = 1; row < data.length; row++) {
    const column = data[row] as ArrayLike<number | null | undefined>
    const from = column.length - 1
    let value: number | null = null
    for (let i = from; i >= 0 && i > from - 5 && value === null; i--) value = column[i] ?? null
    last.push(value)
  }
  return last
}

function optionsOf(
  element: HTMLElement,
  lines: readonly Line[],
  format: (value: number) => string,
  height: number,
  onCursor: (plot: UPlot) => void,
): UPlot.Options {
  const style = getComputedStyle(element)
  const color = (name: string) => resolved(element, `var(--${name})`)
  const axis: UPlot.Axis = {
    stroke: color('ink-3'),
    font: `11px ${style.fontFamily}`,
    grid: { stroke: color('line'), width: 1 },
    ticks: { show: false },
  }
  return {
    width: element.clientWidth || 300,
    height,
    padding: [8, 18, 0, 0],
    legend: { show: false },
    cursor: { drag: { x: false, y: false }, points: { size: 7 } },
    scales: { x: { time: true }, y: { range: (_, __, max) => [0, niceTop(max)] } },
    axes: [
      {
        ...axis,
        size: 24,
        space: 70,
        incrs: TIME_STEPS_S,
        values: (_, splits) => distinct(splits.map(clockLabel)),
      },
      { ...axis, size: 52, space: 34, values: (_, splits) => distinct(splits.map(format)) },
    ],
    series: [
      {},
      ...lines.map(({ label, tone, filled }, index) => ({
        label,
        stroke: color(`${tone}-fill`),
        width: 2,
        dash: DASHES[index % DASHES.length] as number[],
        points: { show: false },
        ...(filled === true && { fill: color(`${tone}-soft`) }),
      })),
    ],
    hooks: { setCursor: [onCursor] },
  }
}

function niceTop(max: number | null): number {
  return max === null || max <= 0 ? 1 : max * 1.1
}

/** A canvas supports neither CSS variables nor `light-dark()`. */
function resolved(element: HTMLElement, value: string): string {
  const before = element.style.color
  element.style.color = value
  const color = getComputedStyle(element).color
  element.style.color = before
  return color
}
