/** A scenario with real processes, and the figures it reports. */
export interface Figure {
  readonly figure: string
  readonly value: number
  /** Required value, such as `≥ 0.9`; undefined if there is none. */
  readonly target: string
  readonly holds: boolean
}

/** Options of the command line. */
export interface RunOptions {
  /** Runs one part of a scenario that has parts. */
  readonly only?: string
  /** Of scenarios whose duration, rate and randomness can be chosen. */
  readonly minutes?: number
  readonly rate?: number
  readonly seed?: number
}

/** A wrong argument of the command line. */
export class UsageError extends Error {}

export interface Scenario {
  readonly name: string
  readonly what: string
  /** Approximate duration. */
  readonly seconds: number
  /** Options of `run` that it takes. Default: none. */
  readonly options?: readonly (keyof RunOptions)[]
  run(options: RunOptions): Promise<readonly Figure[]>
  /** Formats the figures as a table. Default: one line per figure. */
  table?(figures: readonly Figure[]): string
  /** Whether Ctrl-C has ended the run early. `--write` does not write its figures. */
  interrupted?(): boolean
  /** For `--write`: SVG plots of the run, by file name without extension. */
  plots?(): Readonly<Record<string, string>>
  /** For `--write`: the page of the documentation with the figures, between two marks. */
  readonly page?: string
}

export function atLeast(figure: string, value: number, least: number): Figure {
  return { figure, value: rounded(value), target: `≥ ${least}`, holds: value >= least }
}

export function atMost(figure: string, value: number, most: number): Figure {
  return { figure, value: rounded(value), target: `≤ ${most}`, holds: value <= most }
}

/** A figure without a required value. */
export function reported(figure: string, value: number): Figure {
  return { figure, value: rounded(value), target: '', holds: true }
}

function rounded(value: number): number {
  return Number(value.toFixed(value < 10 ? 3 : 0))
}

/** Figures named `row: column` as Markdown. Values that miss their target are bold. */
export function crossTable(figures: readonly Figure[]): string {
  const columns = new Set<string>()
  const rows = new Map<string, string[]>()
  for (const { figure, value, holds } of figures) {
    const [row = '', column = ''] = figure.split(': ')
    columns.add(column)
    rows.set(row, [...(rows.get(row) ?? []), holds ? `${value}` : `**${value}**`])
  }
  const lines = [
    ['', ...columns],
    ['---', ...[...columns].map(() => '--:')],
    ...[...rows].map(([row, values]) => [row, ...values]),
  ]
  return lines.map((cells) => `| ${cells.join(' | ')} |\n`).join('')
}
