// Draws the plots of the documentation: bars of `npm run compare`, commands by number of pods, lines of the soak run.
// Texts use `currentColor`, so that the plots fit light and dark pages.

/** Readable on white and on dark grey. */
export const COLORS = { blue: '#2f7fb3', orange: '#b3602f', grey: '#888888', red: '#c2410c' }

/** A whole file. The title is its heading, and is read aloud. */
export function svg({ width, height, title }, parts) {
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${round(height)}" font-family="system-ui, sans-serif">
<title>${escaped(title)}</title>
<style>svg { color: #1f2933 } @media (prefers-color-scheme: dark) { svg { color: #e6e8eb } }</style>
${text(8, 20, title, { size: 14, weight: 600 })}
${parts.join('\n')}
</svg>
`
}

/** `anchor`: which end of the words is at `x`. */
export function text(x, y, words, { anchor = 'start', size = 12, weight = 400, color } = {}) {
  return `<text x="${round(x)}" y="${round(y)}" text-anchor="${anchor}" font-size="${size}" font-weight="${weight}" fill="${color ?? 'currentColor'}">${escaped(words)}</text>`
}

export function rect(x, y, width, height, color) {
  return `<rect x="${round(x)}" y="${round(y)}" width="${round(width)}" height="${round(height)}" fill="${color}"/>`
}

/** A straight line. `title` is shown when the mouse is over it. */
export function line([x1, y1], [x2, y2], { color, width = 1, opacity = 1, dashed = false, title }) {
  const dashes = dashed ? ' stroke-dasharray="4 3"' : ''
  const inside = title === undefined ? '/>' : `><title>${escaped(title)}</title></line>`
  return `<line x1="${round(x1)}" y1="${round(y1)}" x2="${round(x2)}" y2="${round(y2)}" stroke="${color}" stroke-width="${width}" stroke-opacity="${opacity}"${dashes}${inside}`
}

export function polyline(points, color) {
  const path = points.map(([x, y]) => `${round(x)},${round(y)}`).join(' ')
  return `<polyline fill="none" stroke="${color}" stroke-width="1.5" points="${path}"/>`
}

/** A vertical axis from 0 to a round number: horizontal lines with their values, and `y`, which maps a value. */
export function valueAxis({ most, left, right, top, bottom, steps = 5 }) {
  const step = roundStep(most / steps)
  const end = Math.max(step, Math.ceil(most / step) * step)
  const y = (value) => bottom - ((bottom - top) * value) / end
  const parts = []
  for (let value = 0; value <= end + step / 2; value += step) {
    parts.push(
      line([left, y(value)], [right, y(value)], { color: COLORS.grey, opacity: 0.3 }),
      text(left - 8, y(value) + 4, numberText(value), { anchor: 'end' }),
    )
  }
  return { y, parts }
}

/** Rounds up to 1, 2 or 5 times a power of ten. */
function roundStep(value) {
  const power = 10 ** Math.floor(Math.log10(Math.max(value, 1e-9)))
  return ([1, 2, 5].find((factor) => factor * power >= value * 0.999) ?? 10) * power
}

export function numberText(value) {
  return value.toLocaleString('en-US', { maximumFractionDigits: 2 })
}

function round(value) {
  return Math.round(value * 10) / 10
}

function escaped(words) {
  return words.replaceAll('&', '&amp;').replaceAll('<', '&lt;')
}
