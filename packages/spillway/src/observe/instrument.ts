/** One exported metric. */
import type { View } from './source.js'

export type Labels = Readonly<Record<string, string>>
export type Row = readonly [labels: Labels, value: number]

export interface Instrument {
  /** Its Prometheus name, with base units and `_total`. */
  readonly name: string
  /** Its OpenTelemetry name and unit. */
  readonly dotted: string
  readonly unit: string
  readonly help: string
  readonly kind: 'counter' | 'gauge'
  /** Names of its labels. `guard` stands for the option `guardLabel`. */
  readonly labels: readonly string[]
  read(view: View): Iterable<Row>
}
