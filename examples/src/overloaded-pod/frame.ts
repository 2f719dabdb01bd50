/** One frame of a running act. */
import type { Stage } from './act.js'
import { CHART_WIDTH, chart } from './chart.js'
import { count, perSecond, seconds } from './numbers.js'
import { type Colour, type Line, type Piece, padded, widthOf } from './paint.js'
import { ACT_MS, phaseAt, VENDOR } from './scenario.js'
import { countOf, goodputIn, offeredIn } from './visits.js'

const GAP = 3
const FIGURES_WIDTH = 22
const BAR_CELLS = 40

export interface Heading {
  title: string
  /** An optional remark. */
  means: string
}

export function frame({ title, means }: Heading, stage: Stage, width: number): Line[] {
  const picture = chart(stage.visits, stage.elapsedMs(), width)
  const facts = figures(stage)
  const beside = width >= CHART_WIDTH + GAP + FIGURES_WIDTH
  return [
    withNote([{ text: title, colour: 'bold' }], means, width),
    ...(beside ? sideBySide(picture, facts) : [...picture, ...stacked(facts, width)]),
    withNote(bar('in flight', stage.vendor.inFlight, width), `${VENDOR.servers} run well`, width),
    bar('in line', stage.pod.waiting, width),
  ]
}

/** The line and a remark, if there is room for the whole of it. */
function withNote(line: Line, note: string, width: number): Line {
  const remark: Piece = { text: ` (${note})`, colour: 'dim' }
  return widthOf([...line, remark]) <= width ? [...line, remark] : line
}

/** A fact has a label and a value, each of a fixed width. */
function figures({ visits, elapsedMs }: Stage): Line[] {
  // After the last client, the figures of the last second with clients.
  const nowMs = Math.min(elapsedMs(), ACT_MS)
  const lastSecond = { startMs: Math.max(0, nowMs - 1_000), endMs: Math.max(1, nowMs) }
  const total = (label: string, outcome: Parameters<typeof countOf>[1], colour: Colour) => {
    const value = countOf(visits, outcome)
    return fact(label, count(value), value > 0 ? colour : undefined)
  }
  return [
    fact(phaseAt(nowMs)?.name ?? 'over', seconds(nowMs), 'bold'),
    fact('offered', perSecond(offeredIn(visits, lastSecond))),
    fact('goodput', perSecond(goodputIn(visits, lastSecond)), 'green'),
    [],
    total('answered', 'answered', 'green'),
    total('refused at once', 'refused', 'yellow'),
    total('failed', 'failed', 'red'),
    total('timed out', 'timed out', 'red'),
  ]
}

function fact(label: string, value: string, colour?: Colour): Line {
  const figure: Piece = { text: value.padStart(7) }
  if (colour !== undefined) figure.colour = colour
  return [{ text: label.padEnd(FIGURES_WIDTH - 7) }, figure]
}

function sideBySide(left: readonly Line[], right: readonly Line[]): Line[] {
  return left.map((line, index) => [...padded(line, CHART_WIDTH + GAP), ...(right[index] ?? [])])
}

/** Lines with as many facts as fit. */
function stacked(facts: readonly Line[], width: number): Line[] {
  const lines: Line[] = []
  for (const each of facts.filter((line) => line.length > 0)) {
    const last = lines.at(-1)
    if (last !== undefined && widthOf(last) + GAP + FIGURES_WIDTH <= width) {
      lines[lines.length - 1] = [...last, { text: ' '.repeat(GAP) }, ...each]
    } else {
      lines.push(each)
    }
  }
  return lines
}

/** One cell per call, up to the width. Calls up to the vendor's number of servers are green. */
function bar(label: string, value: number, width: number): Line {
  const cells = Math.max(4, Math.min(BAR_CELLS, width - 18))
  const perCell = BAR_CELLS / cells
  const filled = Math.min(cells, Math.ceil(value / perCell))
  const well = Math.min(filled, VENDOR.servers / perCell)
  return [
    { text: `${label.padEnd(9)} ` },
    { text: '█'.repeat(well), colour: 'green' },
    { text: '█'.repeat(filled - well), colour: 'red' },
    { text: value > BAR_CELLS ? '▶' : '', colour: 'red' },
    { text: ` ${count(value)}` },
  ]
}
