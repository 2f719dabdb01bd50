/** Bar charts of the comparison. */
import { COLORS, line, rect, svg, text } from '../../scripts/svg.mjs'

const WIDTH = 740
const LEFT = 290
const RIGHT = 60
const BAR = 14
const GAP = 12
const TOP = 46

/** `bars`: the figures of each row; `line`: a vertical line at a value; `label`: the text of a row. */
export function barChart({ title, bars, line: mark, label = ({ name }) => name }, rows) {
  const numbers = rows.flatMap((row) => bars.map(({ key }) => row[key])).filter(isNumber)
  const most = Math.max(...numbers, mark?.value ?? 0)
  const x = (value) => LEFT + (value / most) * (WIDTH - LEFT - RIGHT)
  const parts = []
  let y = TOP
  for (const row of rows) {
    const color = row.name.startsWith('Spillway') ? COLORS.blue : COLORS.grey
    const manyBars = bars.length > 1
    const [at, anchor] = manyBars ? [8, 'start'] : [LEFT - 8, 'end']
    parts.push(text(at, y + 11, label(row), { anchor, weight: 600 }))
    if (manyBars) y += BAR + 4
    for (const { key, label: barLabel } of bars) {
      const value = row[key]
      const width = isNumber(value) ? Math.max(x(value) - LEFT, 1) : 0
      if (barLabel !== undefined) {
        parts.push(text(LEFT - 8, y + 11, barLabel, { anchor: 'end', size: 11 }))
      }
      parts.push(
        rect(LEFT, y, width, BAR - 3, color),
        text(LEFT + width + 5, y + 10, value.toLocaleString('en-US'), { size: 11 }),
      )
      y += BAR
    }
    y += GAP
  }
  if (mark !== undefined) {
    const at = x(mark.value)
    const style = { color: COLORS.red, width: 1.5, dashed: true }
    const words = `${mark.label} ${mark.value}`
    parts.push(
      line([at, TOP - 6], [at, y - GAP + 2], style),
      text(at, TOP - 10, words, { anchor: 'middle', size: 11 }),
    )
  }
  return svg({ width: WIDTH, height: y, title }, parts)
}

function isNumber(value) {
  return typeof value === 'number'
}
