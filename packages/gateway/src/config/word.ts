/** A word in the text, for those who must not show it. */
export interface Word {
  readonly path: string
  /** A `lone-name` has no value. */
  readonly kind: 'name' | 'lone-name' | 'value'
  readonly text: string
  readonly start: number
  readonly end: number
}
