/**
 * Results go to stdout, a line each as they come: JSON for programs, a table for people. What is
 * being measured at the moment goes to stderr, so that stdout holds results and nothing else.
 */
import type { Bench, Measured } from './measure.js'

export type Report = (bench: Bench, measured: Measured) => void

export function createJsonReport(): Report {
  return ({ name }, measured) => print(JSON.stringify({ bench: name, ...measured }))
}

/** Prints the head at once. How wide a column has to be is known before there are any figures. */
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
  const printRow = (cells: readonly string[]) => {
    const aligned = columns.map(({ width, right }, column) => {
      const cell = cells[column] ?? ''
      return right ? cell.padStart(width) : cell.padEnd(width)
    })
    print(aligned.join('  ').trimEnd())
  }
  printRow(columns.map(({ head }) => head))
  return (bench, measured) =>
    printRow([bench.name, ...figures(measured), ...verdict(bench, measured)])
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

/** Says what is being measured and returns how to take it back. */
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
