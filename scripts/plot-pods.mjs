// Draws commands at the store by number of pods, from the lines of `spillway simulate pods --json`:
// spillway simulate pods --json | node scripts/plot-pods.mjs > docs/diagrams/pods.svg

import { readFileSync } from 'node:fs'
import { COLORS, numberText, rect, svg, text, valueAxis } from './svg.mjs'

const WIDTH = 740
const HEIGHT = 330
const LEFT = 70
const RIGHT = WIDTH - 20
const TOP = 60
const BOTTOM = 270
const BAR = 70
/** Sent by every pod at a fixed interval, whether it has calls or not. */
const REGULAR = ['pulses.pulse', 'limits.figures', 'breakers.sync', 'pods.beat']

const rows = readFileSync(0, 'utf8')
  .trim()
  .split('\n')
  .map((line) => JSON.parse(line))
const most = Math.max(...rows.map(({ commandsPerSecond }) => commandsPerSecond))
const axis = valueAxis({ most, left: LEFT, right: RIGHT, top: TOP, bottom: BOTTOM })
const bars = rows.flatMap(({ pods, commandsByKind, commandsPerSecond }, index) => {
  const middle = LEFT + ((RIGHT - LEFT) * (index + 0.5)) / rows.length
  const regular = REGULAR.reduce((sum, kind) => sum + (commandsByKind[kind] ?? 0), 0)
  const part = (from, until, color) =>
    rect(middle - BAR / 2, axis.y(until), BAR, axis.y(from) - axis.y(until), color)
  const words = numberText(Math.round(commandsPerSecond))
  return [
    part(0, regular, COLORS.blue),
    part(regular, commandsPerSecond, COLORS.orange),
    text(middle, axis.y(commandsPerSecond) - 6, words, { anchor: 'middle' }),
    text(middle, BOTTOM + 20, `${numberText(pods)} pods`, { anchor: 'middle' }),
  ]
})
const legend = [
  [COLORS.orange, 'because of calls: permits and outcomes'],
  [COLORS.blue, 'regular: heartbeats, pulses, limits, breakers'],
].flatMap(([color, words], index) => {
  const x = LEFT + index * 290
  return [rect(x, HEIGHT - 26, 12, 12, color), text(x + 18, HEIGHT - 16, words)]
})
const title = 'Commands at the store per second: 100 vendors, 330 requests a second'
process.stdout.write(
  svg({ width: WIDTH, height: HEIGHT, title }, [...axis.parts, ...bars, ...legend]),
)
