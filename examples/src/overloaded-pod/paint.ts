/** Text in pieces with a colour each, so that a line is cut to its width before colours are added. */

export type Colour = 'bold' | 'dim' | 'red' | 'green' | 'yellow' | 'cyan'

const CODES: Record<Colour, number> = { bold: 1, dim: 2, red: 31, green: 32, yellow: 33, cyan: 36 }

export interface Piece {
  text: string
  colour?: Colour
}

export type Line = readonly Piece[]

export interface PaintOptions {
  /** Columns of the terminal; the rest is cut off. */
  width: number
  colours: boolean
}

export function paint(line: Line, { width, colours }: PaintOptions): string {
  let left = width
  let painted = ''
  for (const { text, colour } of line) {
    const cut = text.slice(0, left)
    left -= cut.length
    painted += colours && colour !== undefined ? `\x1b[${CODES[colour]}m${cut}\x1b[0m` : cut
  }
  return painted.trimEnd()
}

export function widthOf(line: Line): number {
  return line.reduce((width, { text }) => width + text.length, 0)
}

/** The line with blanks to its right, up to this width. */
export function padded(line: Line, width: number): Line {
  return [...line, { text: ' '.repeat(Math.max(0, width - widthOf(line))) }]
}
