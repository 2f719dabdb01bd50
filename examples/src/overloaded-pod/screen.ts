/** The live view on a terminal: a frame drawn over the last one, a few times a second. */
import type { Clock } from 'spillway/testing'
import type { Stage } from './act.js'
import { frame, type Heading } from './frame.js'
import { type Line, widthOf } from './paint.js'
import type { Terminal } from './terminal.js'

const FRAME_MS = 200
const CLEAR_TO_END_OF_LINE = '\x1b[K'
const CLEAR_BELOW = '\x1b[J'

/** Draws the act until the function returned is called, which keeps the last frame. */
export function drawAct(
  heading: Heading,
  stage: Stage,
  clock: Clock,
  terminal: Terminal,
): () => void {
  let drawn: readonly Line[] = []

  function draw(): void {
    const rowsUp = heightOf(drawn, terminal.width)
    drawn = frame(heading, stage, terminal.width).slice(0, terminal.height)
    const rows = drawn.map((line) => `${terminal.painted(line)}${CLEAR_TO_END_OF_LINE}\n`)
    terminal.write(`${up(rowsUp)}${rows.join('')}${CLEAR_BELOW}`)
  }

  function redraw(): void {
    draw()
    timer = clock.schedule(FRAME_MS, redraw)
  }

  let timer = clock.schedule(0, redraw)
  return () => {
    timer.cancel()
    draw()
    terminal.write('\n')
  }
}

function up(rows: number): string {
  return rows === 0 ? '' : `\x1b[${rows}A\r`
}

/** Current number of rows of the lines: in a narrower window they wrap. */
function heightOf(lines: readonly Line[], width: number): number {
  return lines.reduce((rows, line) => rows + Math.max(1, Math.ceil(widthOf(line) / width)), 0)
}
