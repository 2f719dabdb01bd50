/** Bar charts as SVG. They use `currentColor`, as the other diagrams do, so they fit light and dark pages. */
const WIDTH = 740
const LEFT = 290
const RIGHT = 60
const BAR = 14
const GAP = 12
const TOP = 46
const SPILLWAY = '#2f7fb3'
const OTHERS = '#888888'

/** `bars`: the figures of each row; `line`: a vertical line at a value; `label`: the text of a row. */
export function barChart({ title, bars, line, label = ({ name }) => name }, rows) {
  const numbers = rows.flatMap((row) => bars.map(({ key }) => row[key])).filter(isNumber)
  const most = Math.max(...numbers, line?.value ?? 0)
  const x = (value) => LEFT + (value / most) * (WIDTH - LEFT - RIGHT)
  const parts = []
  let y = TOP
  for (const row of rows) {
    const colour = row.name.startsWith('Spillway') ? SPILLWAY : OTHERS
    const manyBars = bars.length > 1
    parts.push(
      text(manyBars ? 8 : LEFT - 8, y + 11, label(row), manyBars ? 'start' : 'end', 12, 600),
    )
    if (manyBars) y += BAR + 4
    for (const { key, label: barLabel } of bars) {
      const value = row[key]
      if (barLabel !== undefined) parts.push(text(LEFT - 8, y + 11, barLabel, 'end', 11))
      const width = isNumber(value) ? Math.max(x(value) - LEFT, 1) : 0
      parts.push(
        `<rect x="${LEFT}" y="${y}" width="${width.toFixed(1)}" height="${BAR - 3}" rx="2" fill="${colour}"/>`,
        text(LEFT + width + 5, y + 10, `${value.toLocaleString('en-US')}`, 'start', 11),
      )
      y += BAR
    }
    y += GAP
  }
  if (line !== undefined) {
    const at = x(line.value).toFixed(1)
    parts.push(
      `<path d="M${at} ${TOP - 6}V${y - GAP + 2}" fill="none" stroke="#c2410c" stroke-width="1.5" stroke-dasharray="4 3"/>`,
      text(Number(at), TOP - 10, `${line.label} ${line.value}`, 'middle', 11),
    )
  }
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${y}" font-family="system-ui, sans-serif">
<title>${escaped(title)}</title>
<style>svg { color: #1f2933 } @media (prefers-color-scheme: dark) { svg { color: #e6e8eb } }</style>
${text(8, 20, title, 'start', 14, 600)}
${parts.join('\n')}
</svg>
`
}

function text(x, y, words, anchor, size, weight = 400) {
  return `<text x="${x.toFixed(1)}" y="${y}" text-anchor="${anchor}" font-size="${size}" font-weight="${weight}" fill="currentColor">${escaped(words)}</text>`
}

function isNumber(value) {
  return typeof value === 'number'
}

function escaped(words) {
  return words.replaceAll('&', '&amp;').replaceAll('<', '&lt;')
}
