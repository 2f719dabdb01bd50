/** A name or value in the text with its position, so that a report can hide it. */
export interface YamlScalar {
  readonly path: string
  /** A `lone-name` has no value. */
  readonly kind: 'name' | 'lone-name' | 'value'
  readonly text: string
  readonly start: number
  readonly end: number
}
