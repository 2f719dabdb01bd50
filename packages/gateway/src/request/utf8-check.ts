/** Checks that a body which arrives in chunks is valid UTF-8. */
import { isUtf8 } from 'node:buffer'

const EMPTY = Buffer.alloc(0)
/** The longest character has four bytes, so at most three of them can be missing their end. */
const MAX_CUT_BYTES = 3

export class Utf8Check {
  /** The beginning of a character whose end is in the next chunk. */
  #cut: Buffer = EMPTY

  /** False if the bytes so far are not the beginning of valid UTF-8. */
  push(chunk: Buffer): boolean {
    const bytes = this.#cut.length === 0 ? chunk : Buffer.concat([this.#cut, chunk])
    const end = endOfWholeCharacters(bytes)
    // A copy: a slice would keep the whole chunk in memory.
    this.#cut = end === bytes.length ? EMPTY : Buffer.from(bytes.subarray(end))
    return isUtf8(bytes.subarray(0, end))
  }

  /** False if the last character is incomplete. */
  end(): boolean {
    return this.#cut.length === 0
  }
}

/** Where the last character begins if its end is missing; otherwise the length of `bytes`. */
function endOfWholeCharacters(bytes: Buffer): number {
  for (let back = 1; back <= Math.min(MAX_CUT_BYTES, bytes.length); back++) {
    const byte = bytes[bytes.length - back] as number
    if (byte < 0x80) break
    if (byte < 0xc0) continue
    const length = byte >= 0xf0 ? 4 : byte >= 0xe0 ? 3 : 2
    return length > back ? bytes.length - back : bytes.length
  }
  return bytes.length
}
