/**
 * The figures that several runs of the benches had on one machine: their median, and the spread between the lowest and
 * the highest. A later run is compared with the spread, because a figure that moves within it has not changed.
 */
import { type Bench, type Measured, median } from '../measure.js'

/** By suite and bench, as `local/retry-vs-cockatiel`. */
export type Baseline = Readonly<Record<string, RecordedSpread>>

export interface RecordedSpread extends Spread {
  readonly recording: Recording
}

export interface Recording {
  /** The day it started, as 2026-01-31. */
  readonly date: string
  readonly commit: string
  readonly node: string
  readonly runs: number
}

export interface Spread {
  readonly unit: string
  /** The better direction. Undefined for figures without a target. */
  readonly better?: Direction
  readonly min: number
  readonly median: number
  readonly max: number
}

/** The ratio of a comparison, or the value of a figure. */
export interface RunFigure {
  readonly unit: string
  readonly better?: Direction
  readonly figure: number
}

type Direction = 'higher' | 'lower'
export type Verdict = 'within' | 'better' | 'worse' | 'outside' | 'new'

export function runFigure(bench: Bench, measured: Measured): RunFigure {
  if ('ratio' in measured) return { unit: 'ratio', better: 'higher', figure: measured.ratio }
  const { value: figure, unit } = measured
  const { target } = bench
  if (typeof target !== 'object') return { unit, figure }
  return { unit, better: 'atLeast' in target ? 'higher' : 'lower', figure }
}

/** The spread of one bench over all runs. */
export function spreadOf(figures: readonly RunFigure[]): Spread {
  const [first] = figures
  if (first === undefined) throw new RangeError('a spread needs at least one run')
  const { figure: _, ...described } = first
  const values = figures.map(({ figure }) => figure)
  return {
    ...described,
    min: Math.min(...values),
    median: median(values),
    max: Math.max(...values),
  }
}

export function verdictOf(spread: Spread | undefined, { figure }: RunFigure): Verdict {
  if (spread === undefined) return 'new'
  if (figure >= spread.min && figure <= spread.max) return 'within'
  if (spread.better === undefined) return 'outside'
  return figure > spread.max === (spread.better === 'higher') ? 'better' : 'worse'
}

/**
 * In an unchanged program, a sixth run is outside the spread of five in one case of three. So a figure outside is
 * measured again. It has changed only if all measurements are on the same side of the spread.
 */
const MOST_MEASUREMENTS = 3

export async function compare(
  spread: Spread | undefined,
  measureOnce: () => Promise<RunFigure>,
): Promise<{ figure: RunFigure; verdict: Verdict }> {
  const first = await measureOnce()
  const verdict = verdictOf(spread, first)
  if (spread === undefined || verdict === 'within') return { figure: first, verdict }
  const isAbove = first.figure > spread.max
  for (let count = 2; count <= MOST_MEASUREMENTS; count++) {
    const figure = await measureOnce()
    const isOnSameSide = isAbove ? figure.figure > spread.max : figure.figure < spread.min
    if (!isOnSameSide) return { figure, verdict: 'within' }
  }
  return { figure: first, verdict }
}
