/** The samples of a soak run as an SVG: one panel per quantity, with a line for each gateway and a mark for each fault. */
import type { InjectedFault } from './random-faults.js'
import type { Sample } from './sample.js'

interface Line {
  readonly name: string
  readonly color: string
  readonly points: readonly (readonly [atS: number, value: number])[]
}

interface Panel {
  readonly title: string
  readonly lines: readonly Line[]
}

const WIDTH = 900
const PANEL_HEIGHT = 150
const LEFT = 60
const RIGHT = 20
const TOP = 34
const PLOT_HEIGHT = PANEL_HEIGHT - TOP - 22
/** Readable on white and on dark grey. */
const COLORS = ['#2f81c7', '#d9822b'] as const
const TEXT = '#7d8590'
const MARK = '#c93c3c'
const GRID_STEPS = 2

export function plotSoak(samples: readonly Sample[], faults: readonly InjectedFault[]): string {
  const panels = panelsOf(samples)
  const endS = Math.max(1, ...samples.map(({ atS }) => atS))
  const x = (atS: number) => LEFT + (atS / endS) * (WIDTH - LEFT - RIGHT)
  const height = panels.length * PANEL_HEIGHT + 20
  const marks = faults.map(({ name, atS }) => {
    const at = x(atS).toFixed(1)
    return `<line x1="${at}" x2="${at}" y1="${TOP}" y2="${height - 40}" stroke="${MARK}" stroke-opacity="0.25"><title>${name}</title></line>`
  })
  const minutes = Array.from({ length: Math.floor(endS / 300) + 1 }, (_, index) => index * 5)
  const times = minutes.map((minute) =>
    label(x(minute * 60), height - 8, `${minute} min`, 'middle'),
  )
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${height}" font-family="sans-serif" font-size="12">`,
    ...marks,
    ...panels.map((panel, index) => drawPanel(panel, index * PANEL_HEIGHT, x)),
    ...times,
    '</svg>\n',
  ].join('\n')
}

function panelsOf(samples: readonly Sample[]): Panel[] {
  const perGateway = (title: string, read: (sample: Sample, gateway: number) => number): Panel => ({
    title,
    lines: COLORS.map((color, gateway) => ({
      name: `gateway ${gateway + 1}`,
      color,
      points: samples.map((sample) => [sample.atS, read(sample, gateway)] as const),
    })),
  })
  const succeeded = samples.slice(1).map((sample, index) => {
    const last = samples[index]!
    return [sample.atS, (sample.succeeded - last.succeeded) / (sample.atS - last.atS)] as const
  })
  const keys = samples.flatMap(({ atS, redisKeys }) =>
    redisKeys === undefined ? [] : [[atS, redisKeys] as const],
  )
  return [
    one('Requests answered with 200 per second; red lines: faults', succeeded),
    perGateway('Heap in use after a collection, MB', (sample, at) => sample.gateways[at]!.heapMb),
    perGateway('Open descriptors', (sample, at) => sample.gateways[at]!.descriptors),
    perGateway('Slots held', (sample, at) => sample.gateways[at]!.active),
    one('Redis keys', keys),
  ]
}

function one(title: string, points: Line['points']): Panel {
  return { title, lines: [{ name: '', color: COLORS[0], points }] }
}

function drawPanel({ title, lines }: Panel, top: number, x: (atS: number) => number): string {
  const most = Math.max(1, ...lines.flatMap(({ points }) => points.map(([, value]) => value)))
  const y = (value: number) => top + TOP + PLOT_HEIGHT * (1 - value / most)
  const grid = Array.from({ length: GRID_STEPS + 1 }, (_, step) => {
    const value = (most * step) / GRID_STEPS
    const at = y(value).toFixed(1)
    const line = `<line x1="${LEFT}" x2="${WIDTH - RIGHT}" y1="${at}" y2="${at}" stroke="${TEXT}" stroke-opacity="0.3"/>`
    return line + label(LEFT - 6, y(value) + 4, value.toFixed(value < 10 ? 1 : 0), 'end')
  })
  const drawn = lines.map(({ color, points }) => {
    const path = points.map(([atS, value]) => `${x(atS).toFixed(1)},${y(value).toFixed(1)}`)
    return `<polyline fill="none" stroke="${color}" stroke-width="1.5" points="${path.join(' ')}"/>`
  })
  const names = lines
    .filter(({ name }) => name !== '')
    .map(({ name, color }, index) =>
      label(WIDTH - RIGHT - index * 90, top + TOP - 10, name, 'end', color),
    )
  return [...grid, ...drawn, ...names, label(LEFT, top + TOP - 10, title, 'start')].join('\n')
}

function label(x: number, y: number, text: string, anchor: string, color = TEXT): string {
  return `<text x="${x.toFixed(1)}" y="${y.toFixed(1)}" text-anchor="${anchor}" fill="${color}">${text}</text>`
}
