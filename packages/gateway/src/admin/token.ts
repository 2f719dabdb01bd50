/** The token of operators: kept as a digest, and compared in a time that says nothing of it. */
import { createHash, timingSafeEqual } from 'node:crypto'

export class Token {
  readonly #digest: Buffer

  constructor(secret: string) {
    this.#digest = digestOf(secret)
  }

  /** Whether this `authorization` header shows it. */
  isShownBy(authorization: string | undefined): boolean {
    const [, shown = ''] = /^Bearer +(\S+)\s*$/i.exec(authorization ?? '') ?? []
    return timingSafeEqual(digestOf(shown), this.#digest)
  }
}

function digestOf(text: string): Buffer {
  return createHash('sha256').update(text).digest()
}
