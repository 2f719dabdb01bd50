/** Bytes in chunks: a large body is never copied into one piece, nor held twice. */

import { sampleText, type TextSampler } from 'spillway/internal'

/** Smaller chunks are copied together, so that a body sent byte by byte does not cost an object for each. */
const BLOCK_BYTES = 16_384

export interface ByteEdit {
  /** The bytes from `start` up to `end`, exclusive, are replaced. */
  readonly start: number
  readonly end: number
  readonly text: string
}

export class ByteList {
  readonly #chunks: Buffer[] = []
  /** Free space at the end of the last chunk, if `ByteList` allocated that chunk. */
  #block: { readonly bytes: Buffer; used: number } | undefined
  #length = 0

  static of(...chunks: readonly Buffer[]): ByteList {
    const list = new ByteList()
    for (const chunk of chunks) list.push(chunk)
    return list
  }

  get length(): number {
    return this.#length
  }

  get chunks(): readonly Buffer[] {
    return this.#chunks
  }

  push(chunk: Buffer): void {
    if (chunk.length === 0) return
    this.#length += chunk.length
    // The first chunk is mostly the whole body.
    if (chunk.length >= BLOCK_BYTES / 2 || this.#chunks.length === 0) {
      this.#chunks.push(chunk)
      this.#block = undefined
      return
    }
    this.#copy(chunk)
  }

  #copy(chunk: Buffer): void {
    if (this.#block === undefined || this.#block.used + chunk.length > BLOCK_BYTES) {
      this.#block = { bytes: Buffer.allocUnsafe(BLOCK_BYTES), used: 0 }
      this.#chunks.push(this.#block.bytes.subarray(0, 0))
    }
    const { bytes, used } = this.#block
    chunk.copy(bytes, used)
    this.#block.used += chunk.length
    this.#chunks[this.#chunks.length - 1] = bytes.subarray(0, this.#block.used)
  }

  /** In one piece: a copy, unless there is only one chunk. */
  toBuffer(): Buffer {
    const [first] = this.#chunks
    return first !== undefined && this.#chunks.length === 1 ? first : Buffer.concat(this.#chunks)
  }

  /** Hashes texts in the bytes. They are mostly read in order, so it begins at the last chunk that it has found. */
  sampler(): TextSampler {
    let index = 0
    let offset = 0
    return (hash, start, end) => {
      hash.addNumber(end - start)
      if (start < offset) [index, offset] = [0, 0]
      let chunk = this.#chunks[index]
      while (chunk !== undefined && start >= offset + chunk.length) {
        offset += chunk.length
        chunk = this.#chunks[++index]
      }
      if (chunk !== undefined && end <= offset + chunk.length) {
        const bytes = chunk
        sampleText(start - offset, end - offset, (from, to) => hash.addBytes(bytes, from, to))
        return
      }
      sampleText(start, end, (from, to) => hash.addBytes(this.#copyOf(from, to), 0, to - from))
    }
  }

  /** With these edits, which must be in order and apart. Shares the bytes that stay. */
  edited(edits: readonly ByteEdit[]): ByteList {
    const list = new ByteList()
    let from = 0
    for (const { start, end, text } of edits) {
      list.#append(this, from, start)
      list.push(Buffer.from(text))
      from = end
    }
    list.#append(this, from, this.#length)
    return list
  }

  #append(other: ByteList, start: number, end: number): void {
    other.#forEach(start, end, (chunk, from, to) => this.push(chunk.subarray(from, to)))
  }

  #copyOf(start: number, end: number): Buffer {
    const copy = Buffer.alloc(end - start)
    let length = 0
    this.#forEach(start, end, (chunk, from, to) => {
      length += chunk.copy(copy, length, from, to)
    })
    return copy
  }

  /** The chunks that have bytes from `start` up to `end`, and where in the chunk they are. */
  #forEach(
    start: number,
    end: number,
    visit: (chunk: Buffer, from: number, to: number) => void,
  ): void {
    let offset = 0
    for (const chunk of this.#chunks) {
      if (offset >= end) return
      const from = Math.max(0, start - offset)
      const to = Math.min(chunk.length, end - offset)
      if (from < to) visit(chunk, from, to)
      offset += chunk.length
    }
  }
}
