/** Results of reading a JSON body. The body itself is not built in memory. */

export interface JsonField {
  readonly value: unknown
  /** Position of the value in the body, in bytes; `end` is exclusive. */
  readonly start: number
  readonly end: number
}

export interface JsonObject {
  /** The chosen fields that are present. */
  readonly fields: ReadonlyMap<string, JsonField>
  /** Position behind the opening brace. */
  readonly start: number
  /** It has no fields at all. */
  readonly isEmpty: boolean
}

/** Receives what is inside the `contents` fields, in order. */
export interface ContentVisitor {
  /**
   * `bytes`: length of the decoded text in UTF-8. `beginning`: see below. `start` and `end`: position in the body, without
   * the quotes.
   */
  onText(bytes: number, beginning: string, start: number, end: number): void
  onObject(): void
  /** A number, boolean or null below the field itself. */
  onScalar(): void
  /** An item of the field ends here, or the field itself. */
  onPart(field: string): void
  /** A text's beginning is passed up to this length, and only if all its characters match. */
  readonly beginningLength: number
  readonly beginningPattern: RegExp
}
