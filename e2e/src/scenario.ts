/** Something that is tried out with real processes, and figures that say how it went. */
export interface Figure {
  readonly figure: string
  readonly value: number
  /** What we want, such as `≥ 0.9`; nothing, if there is nothing to want. */
  readonly target: string
  readonly holds: boolean
}

export interface Scenario {
  readonly name: string
  readonly what: string
  /** How long it takes, about. */
  readonly seconds: number
  /** `only`: a part of it, where it has parts. */
  run(only?: string): Promise<readonly Figure[]>
  /** The figures side by side, where that is easier to read. Default: one line for each. */
  table?(figures: readonly Figure[]): string
}

export function atLeast(figure: string, value: number, least: number): Figure {
  return { figure, value: rounded(value), target: `≥ ${least}`, holds: value >= least }
}

export function atMost(figure: string, value: number, most: number): Figure {
  return { figure, value: rounded(value), target: `≤ ${most}`, holds: value <= most }
}

/** To know. */
export function told(figure: string, value: number): Figure {
  return { figure, value: rounded(value), target: '', holds: true }
}

function rounded(value: number): number {
  return Number(value.toFixed(value < 10 ? 3 : 0))
}
