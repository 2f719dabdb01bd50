/**
 * Results go to stdout, one line each: JSON for programs, a table for people. Progress goes to stderr, so that stdout
 * contains only results.
 */
import type { Baseline, Recording, RunFigure, Spread, Verdict } from './baseline/baseline.js'
import type { Bench, Measured, Suite } from './measure.js'

export type Report = (bench: Bench, measured: Measured) => void

export function createJsonReport(): Report {
  return ({ name }, measured) => print(JSON.stringify({ bench: name, ...measured }))
}

/** Prints the header immediately; the column widths do not depend on the figures. */
export function createTableReport(benches: readonly Bench[]): Report {
  const columns = [
    { head: 'bench', width: widest(benches.map(({ name }) => name)) },
    { head: 'spillway', width: 22, right: true },
    { head: 'peer', width: 20, right: true },
    {
      head: '',
      width: widest(benches.map((bench) => ('peerName' in bench ? bench.peerName : ''))),
    },
    { head: 'ratio', width: 6, right: true },
    { head: 'target', width: 9, right: true },
    { head: '', width: 'reached'.length },
  ]
  const printRow = printHead(columns)
  return (bench, measured) =>
    printRow([bench.name, ...figures(measured), ...verdict(bench, measured)])
}

/** A row for each figure: its value, its spread in the baseline, and the result of the comparison. */
export function createCompareReport(baseline: Baseline, suites: readonly Suite[]) {
  for (const line of recordingLines(baseline, suites)) print(line)
  const keys = suites.flatMap(({ name, benches }) =>
    benches.map((bench) => `${name}/${bench.name}`),
  )
  const printRow = printHead([
    { head: 'bench', width: widest(keys) },
    { head: 'now', width: 22, right: true },
    { head: 'lowest', width: 12, right: true },
    { head: 'median', width: 12, right: true },
    { head: 'highest', width: 12, right: true },
    { head: '', width: 'outside'.length },
  ])
  return (key: string, figure: RunFigure, spread: Spread | undefined, verdict: Verdict) => {
    const spreadCells = [spread?.min, spread?.median, spread?.max].map((each) =>
      each === undefined ? '' : grouped(each),
    )
    const verdictCell = verdict === 'within' ? '' : verdict
    printRow([key, `${grouped(figure.figure)} ${figure.unit}`, ...spreadCells, verdictCell])
  }
}

/** A line for each recording, with the suites, or benches of a suite, that it has the figures of. */
export function recordingLines(baseline: Baseline, suites: readonly Suite[]): string[] {
  const recorded = new Map<string, string[]>()
  for (const { name, benches } of suites) {
    const ofSuite = benches.flatMap((bench) => {
      const key = `${name}/${bench.name}`
      const recording = baseline[key]?.recording
      return recording === undefined ? [] : [{ key, text: textOf(recording) }]
    })
    const texts = new Set(ofSuite.map(({ text }) => text))
    for (const text of texts) {
      const keys = ofSuite.filter((each) => each.text === text).map(({ key }) => key)
      recorded.set(text, [...(recorded.get(text) ?? []), ...(texts.size === 1 ? [name] : keys)])
    }
  }
  return Array.from(recorded, ([text, names]) => `baseline of ${text}: ${names.join(', ')}`)
}

function textOf({ date, commit, node, runs }: Recording): string {
  return `${date}, commit ${commit}, Node ${node}, ${runs} ${runs === 1 ? 'run' : 'runs'}`
}

interface Column {
  head: string
  width: number
  right?: boolean
}

/** Prints the head of a table; returns the function that prints its rows. */
function printHead(columns: readonly Column[]): (cells: readonly string[]) => void {
  const printRow = (cells: readonly string[]) => {
    const aligned = columns.map(({ width, right }, column) => {
      const cell = cells[column] ?? ''
      return right ? cell.padStart(width) : cell.padEnd(width)
    })
    print(aligned.join('  ').trimEnd())
  }
  printRow(columns.map(({ head }) => head))
  return printRow
}

/** Spillway's figure, the peer's, the peer's name and the ratio. */
function figures(measured: Measured): string[] {
  const { unit } = measured
  if ('value' in measured) return [`${grouped(measured.value)} ${unit}`, '', '', '']
  const { ours, peer, peerName, ratio } = measured
  return [`${grouped(ours)} ${unit}`, `${grouped(peer)} ${unit}`, peerName, ratio.toFixed(2)]
}

function verdict({ target }: Bench, measured: Measured): string[] {
  if (target === undefined) return []
  const got = 'value' in measured ? measured.value : measured.ratio
  if (typeof target === 'object' && 'atMost' in target) {
    return [`≤ ${grouped(target.atMost)}`, got <= target.atMost ? 'reached' : 'missed']
  }
  const least = typeof target === 'object' ? target.atLeast : target
  return [`≥ ${grouped(least)}`, got >= least ? 'reached' : 'missed']
}

/** Shows what is being measured. Returns a function that clears the line. */
export function showProgress(text: string): () => void {
  const { stderr } = process
  if (!stderr.isTTY) {
    stderr.write(`${text}\n`)
    return () => {}
  }
  stderr.write(text)
  return () => stderr.write('\r\x1b[K')
}

function print(line: string): void {
  process.stdout.write(`${line}\n`)
}

function widest(texts: readonly string[]): number {
  return Math.max(...texts.map((text) => text.length))
}

function grouped(figure: number): string {
  return figure.toLocaleString('en-US', { maximumFractionDigits: Math.abs(figure) < 10 ? 3 : 1 })
}
