/** The samples of a soak run as an SVG: one panel per quantity, with a line for each gateway and a mark for each fault. */
import { COLORS, line, type Point, polyline, svg, text, valueAxis } from '../../../scripts/svg.mjs'
import type { InjectedFault } from './random-faults.js'
import type { Sample } from './sample.js'

interface Panel {
  readonly title: string
  /** One line for each gateway, or one for both. */
  readonly lines: readonly (readonly (readonly [atS: number, value: number])[])[]
}

const WIDTH = 740
const LEFT = 70
const RIGHT = WIDTH - 20
const FIRST_PANEL = 36
const PANEL_HEIGHT = 130
/** Of a panel, below its title. */
const PLOT_TOP = 24
const PLOT_HEIGHT = 80
const LINE_COLORS = [COLORS.blue, COLORS.orange]
/** Steps of the time axis, in seconds; the first with at most 10 labels is used. */
const TIME_STEPS_S = [15, 30, 60, 120, 300, 600]

export function plotSoak(samples: readonly Sample[], faults: readonly InjectedFault[]): string {
  const panels = panelsOf(samples)
  const endS = Math.max(1, ...samples.map(({ atS }) => atS))
  const x = (atS: number) => LEFT + (atS / endS) * (RIGHT - LEFT)
  const bottom = FIRST_PANEL + panels.length * PANEL_HEIGHT
  const marks = faults.map(({ name, atS }) =>
    line(
      [x(atS), FIRST_PANEL + PLOT_TOP],
      [x(atS), bottom - PANEL_HEIGHT + PLOT_TOP + PLOT_HEIGHT],
      {
        color: COLORS.red,
        opacity: 0.3,
        title: name,
      },
    ),
  )
  const stepS = TIME_STEPS_S.find((step) => endS / step <= 10) ?? endS / 10
  const times = Array.from({ length: Math.floor(endS / stepS) + 1 }, (_, index) =>
    text(x(index * stepS), bottom, timeText(index * stepS), { anchor: 'middle' }),
  )
  return svg(
    {
      width: WIDTH,
      height: bottom + 12,
      title: 'Two gateways under constant load; a red line is the start of a fault',
    },
    [
      ...marks,
      ...panels.flatMap((panel, index) => drawPanel(panel, FIRST_PANEL + index * PANEL_HEIGHT, x)),
      ...times,
    ],
  )
}

function timeText(seconds: number): string {
  return seconds % 60 === 0 ? `${seconds / 60} min` : `${seconds} s`
}

function panelsOf(samples: readonly Sample[]): Panel[] {
  const perGateway = (title: string, read: (of: Sample['gateways'][number]) => number): Panel => ({
    title,
    lines: LINE_COLORS.map((_, gateway) =>
      samples.map(({ atS, gateways }) => [atS, read(gateways[gateway]!)] as const),
    ),
  })
  const perSecond = (title: string, read: (sample: Sample) => number): Panel => ({
    title,
    lines: [
      samples.slice(1).map((sample, index) => {
        const last = samples[index]!
        return [sample.atS, (read(sample) - read(last)) / (sample.atS - last.atS)] as const
      }),
    ],
  })
  const keys = samples.flatMap(({ atS, redisKeys }) =>
    redisKeys === undefined ? [] : [[atS, redisKeys] as const],
  )
  return [
    perSecond('Answered with 200, per second', ({ succeeded }) => succeeded),
    perGateway('Heap in use after a collection, MB', ({ heapMb }) => heapMb),
    perGateway('Open descriptors', ({ descriptors }) => descriptors),
    perGateway('Slots held', ({ active }) => active),
    { title: 'Redis keys', lines: [keys] },
  ]
}

function drawPanel({ title, lines }: Panel, top: number, x: (atS: number) => number): string[] {
  const plotTop = top + PLOT_TOP
  const axis = valueAxis({
    most: Math.max(...lines.flat().map(([, value]) => value), 1),
    left: LEFT,
    right: RIGHT,
    top: plotTop,
    bottom: plotTop + PLOT_HEIGHT,
    steps: 2,
  })
  const drawn = lines.map((points, index) =>
    polyline(
      points.map(([atS, value]): Point => [x(atS), axis.y(value)]),
      LINE_COLORS[index]!,
    ),
  )
  const names =
    lines.length === 1
      ? []
      : lines.map((_, index) =>
          text(RIGHT - (lines.length - 1 - index) * 80, plotTop - 8, `gateway ${index + 1}`, {
            anchor: 'end',
            color: LINE_COLORS[index]!,
          }),
        )
  return [text(LEFT, plotTop - 8, title, { weight: 600 }), ...names, ...axis.parts, ...drawn]
}
