/** One thing that is told of a spillway. */
import type { View } from './source.js'

export type Labels = Readonly<Record<string, string>>
export type Row = readonly [labels: Labels, value: number]

export interface Instrument {
  /** Its name with Prometheus: base units and `_total`. */
  readonly name: string
  /** Its name with OpenTelemetry, and its unit there. */
  readonly dotted: string
  readonly unit: string
  readonly help: string
  readonly kind: 'counter' | 'gauge'
  read(view: View): Iterable<Row>
}
