/** A body in chunks (RFC 9112, 7.1), however the network cuts it. Extensions and trailers are skipped. */
import { TOKEN } from './header-name.js'
import { malformed } from './wire-error.js'

type Part = 'size' | 'extension' | 'size-end' | 'data' | 'data-cr' | 'data-lf' | 'trailer'

const CR = 0x0d
const LF = 0x0a
const SEMICOLON = 0x3b
/** More than fits a body that anybody sends. */
const MOST_DIGITS = 12
const QUOTED = String.raw`"(?:[\t\x20\x21\x23-\x5b\x5d-\x7e\x80-\xff]|\\[\t\x20-\x7e\x80-\xff])*"`
/** Names, some of them with values, behind the first `;`. */
const EXTENSIONS = new RegExp(`^(?:(?:^|;)${TOKEN}(?:=(?:${TOKEN}|${QUOTED}))?)+$`)
/** A header that says nothing of the body's own frame. */
const TRAILER = new RegExp(
  String.raw`^(?!content-length:|transfer-encoding:)${TOKEN}:[\t\x20-\x7e\x80-\xff]*$`,
  'i',
)
/** Of all extensions together, and of all trailers. */
const MOST_SKIPPED_BYTES = 16_384

export class ChunkedBody {
  #part: Part = 'size'
  #size = 0
  #digits = 0
  #skipped = 0
  #extension = ''
  /** The trailer's line so far, and whether its last byte was a CR. */
  #line = ''
  #afterCr = false
  #over = false

  /** The last chunk has come, and what follows it. */
  get over(): boolean {
    return this.#over
  }

  /** Answers with how many bytes of `bytes` belong to the body's frame; fewer than all if it is over. */
  push(bytes: Buffer, onData: (piece: Buffer) => void): number {
    let at = 0
    while (at < bytes.length && !this.#over) {
      if (this.#part === 'data') at = this.#takeData(bytes, at, onData)
      else this.#step(bytes[at++] as number)
    }
    return at
  }

  #takeData(bytes: Buffer, at: number, onData: (piece: Buffer) => void): number {
    const end = Math.min(bytes.length, at + this.#size)
    this.#size -= end - at
    if (this.#size === 0) this.#part = 'data-cr'
    onData(at === 0 && end === bytes.length ? bytes : bytes.subarray(at, end))
    return end
  }

  #step(byte: number): void {
    switch (this.#part) {
      case 'size':
        return this.#takeSize(byte)
      case 'extension':
        return this.#takeExtension(byte)
      case 'size-end':
        this.#want(byte, LF)
        this.#part = this.#size === 0 ? 'trailer' : 'data'
        this.#digits = 0
        return
      case 'data-cr':
        this.#want(byte, CR)
        this.#part = 'data-lf'
        return
      case 'data-lf':
        this.#want(byte, LF)
        this.#part = 'size'
        return
      case 'trailer':
        return this.#takeTrailer(byte)
    }
  }

  #takeSize(byte: number): void {
    const digit = hexDigit(byte)
    if (digit >= 0) {
      if (++this.#digits > MOST_DIGITS) throw malformed('has a chunk of impossible size')
      this.#size = this.#size * 16 + digit
      return
    }
    if (this.#digits === 0) throw malformed('has a chunk without a size')
    if (byte === CR) this.#part = 'size-end'
    else if (byte === SEMICOLON) this.#part = 'extension'
    else throw malformed('has a chunk of odd size')
  }

  #takeExtension(byte: number): void {
    if (byte !== CR) {
      this.#skip(byte)
      this.#extension += String.fromCharCode(byte)
      return
    }
    if (!EXTENSIONS.test(this.#extension)) throw malformed('has an odd extension of a chunk')
    this.#extension = ''
    this.#part = 'size-end'
  }

  #takeTrailer(byte: number): void {
    if (this.#afterCr) {
      this.#want(byte, LF)
      this.#afterCr = false
      if (this.#line === '') this.#over = true
      else if (!TRAILER.test(this.#line)) throw malformed('has an odd trailer')
      this.#line = ''
    } else if (byte === CR) this.#afterCr = true
    else {
      this.#skip(byte)
      this.#line += String.fromCharCode(byte)
    }
  }

  #skip(byte: number): void {
    if (byte === LF || byte === 0) throw malformed('has an odd byte beside its chunks')
    if (++this.#skipped > MOST_SKIPPED_BYTES) throw malformed('has too much beside its chunks')
  }

  #want(byte: number, wanted: number): void {
    if (byte !== wanted) throw malformed('has a chunk that does not end where it should')
  }
}

function hexDigit(byte: number): number {
  if (byte >= 0x30 && byte <= 0x39) return byte - 0x30
  const letter = byte | 0x20
  return letter >= 0x61 && letter <= 0x66 ? letter - 0x57 : -1
}
