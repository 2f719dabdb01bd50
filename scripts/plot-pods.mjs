// Draws commands at the store by number of pods, from the lines of `spillway simulate pods --json`:
// spillway simulate pods --json | node scripts/plot-pods.mjs > docs/diagrams/pods.svg

import { readFileSync } from 'node:fs'

const WIDTH = 740
const HEIGHT = 330
const LEFT = 70
const BOTTOM = 270
const TOP = 60
const BAR = 70
/** Sent by every pod at a fixed interval, whether it has calls or not. */
const REGULAR = ['pulses.pulse', 'limits.figures', 'breakers.sync', 'pods.beat']

const rows = readFileSync(0, 'utf8')
  .trim()
  .split('\n')
  .map((line) => JSON.parse(line))
const most = Math.max(...rows.map(({ commandsPerSecond }) => commandsPerSecond))
const step = 10 ** Math.floor(Math.log10(most))
const top = Math.ceil(most / step) * step
const y = (value) => BOTTOM - ((BOTTOM - TOP) * value) / top
const text = (x, at, content, more = '') =>
  `<text x="${x}" y="${at.toFixed(1)}" font-size="12" fill="currentColor" ${more}>${content}</text>`
const count = (value) => Math.round(value).toLocaleString('en-US')

const grid = []
for (let value = 0; value <= top; value += step * (top / step > 5 ? 2 : 1)) {
  grid.push(
    `<path d="M${LEFT} ${y(value).toFixed(1)}H${WIDTH - 20}" stroke="#888888" stroke-opacity="0.3"/>`,
  )
  grid.push(text(LEFT - 8, y(value) + 4, count(value), 'text-anchor="end" opacity="0.75"'))
}
const bars = rows.map(({ pods, commandsByKind, commandsPerSecond }, index) => {
  const middle = LEFT + ((WIDTH - 20 - LEFT) * (index + 0.5)) / rows.length
  const regular = REGULAR.reduce((sum, kind) => sum + (commandsByKind[kind] ?? 0), 0)
  const rect = (from, until, colour) =>
    `<rect x="${(middle - BAR / 2).toFixed(1)}" y="${y(until).toFixed(1)}" width="${BAR}" height="${(y(from) - y(until)).toFixed(1)}" fill="${colour}"/>`
  return [
    rect(0, regular, '#2f7fb3'),
    rect(regular, commandsPerSecond, '#b3602f'),
    text(middle, y(commandsPerSecond) - 6, count(commandsPerSecond), 'text-anchor="middle"'),
    text(middle, BOTTOM + 20, `${count(pods)} pods`, 'text-anchor="middle"'),
  ].join('\n')
})
const legend = [
  ['#b3602f', 'because of calls: permits and outcomes'],
  ['#2f7fb3', 'regular: heartbeats, pulses, limits, breakers'],
].map(
  ([colour, what], index) =>
    `<rect x="${LEFT + index * 290}" y="${HEIGHT - 26}" width="12" height="12" fill="${colour}"/>${text(LEFT + 18 + index * 290, HEIGHT - 16, what)}`,
)
process.stdout.write(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${HEIGHT}" font-family="system-ui, sans-serif">
<title>Commands at the store per second, by number of pods</title>
<style>svg { color: #1f2933 } @media (prefers-color-scheme: dark) { svg { color: #e6e8eb } }</style>
${text(20, 28, 'Commands at the store per second: 100 vendors, 330 requests a second', 'font-weight="600"')}
${[...grid, ...bars, ...legend].join('\n')}
</svg>
`)
