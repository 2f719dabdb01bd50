/** Standard output: a terminal that can be redrawn, or a file or pipe that takes lines. */
import type { WriteStream } from 'node:tty'
import { type Line, paint } from './paint.js'
import { wrap } from './wrap.js'

const DEFAULT_COLUMNS = 80
const CLEAR_LINE = '\r\x1b[2K'
const HIDE_CURSOR = '\x1b[?25l'
const SHOW_CURSOR = '\x1b[?25h'

export interface Terminal {
  /** Whether lines can be overwritten: false for a pipe or a file. */
  readonly drawable: boolean
  /** Columns to use. */
  readonly width: number
  /** Rows to use. */
  readonly height: number
  write(text: string): void
  print(line: Line): void
  /** Prints a sentence, broken to fit. */
  say(text: string): void
  /** Hides the cursor until the program ends. */
  hideCursor(): void
  /** The line as it is written, cut to fit. */
  painted(line: Line): string
}

export function createTerminal(out: WriteStream, env: NodeJS.ProcessEnv): Terminal {
  const drawable = out.isTTY === true && env.TERM !== 'dumb'
  const colours = drawable && !env.NO_COLOR
  // In the last column some terminals wrap and some do not.
  const width = () => (drawable ? (out.columns || DEFAULT_COLUMNS) - 1 : DEFAULT_COLUMNS)
  const write = (text: string) => void out.write(text)
  const painted = (line: Line) => paint(line, { width: width(), colours })
  const print = (line: Line) => write(`${painted(line)}\n`)

  return {
    drawable,
    get width() {
      return width()
    },
    get height() {
      return drawable && out.rows > 0 ? out.rows - 1 : Number.POSITIVE_INFINITY
    },
    write,
    painted,
    print,
    say: (text) => {
      for (const line of wrap(text, width())) write(`${line}\n`)
    },
    hideCursor() {
      write(HIDE_CURSOR)
      // At any end of the program: shows the cursor again and removes the ^C of the terminal.
      process.once('exit', () => write(CLEAR_LINE + SHOW_CURSOR))
    },
  }
}
