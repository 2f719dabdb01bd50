/**
 * A hash of the texts of a prompt so far, by which the prompt is recognised when it is sent again with more behind it.
 * Long texts are sampled: a prompt of 500 kB is hashed in microseconds. Two prompts that differ only between the samples
 * get the same hash, so an estimate may be wrong until the answer settles it.
 */

/** Texts up to this length are hashed entirely. */
const WHOLE_LENGTH = 128
/** Of a longer text: its beginning, its end, and samples between them. */
const END_LENGTH = 32
const SAMPLES = 4
const SAMPLE_LENGTH = 16

export class PrefixHash {
  #high: number
  #low: number

  constructor(high = 0x811c9dc5, low = 0x1b873593) {
    this.#high = high
    this.#low = low
  }

  /**
   * The bytes of one sample, which must not be added in pieces. Four at a time and in local variables: the prefixes of
   * 500 messages of 1 kB take 130 µs, and took 600 µs with a call for each byte.
   */
  addBytes(bytes: Uint8Array, from: number, to: number): void {
    let high = this.#high
    let low = this.#low
    let at = from
    for (; at + 4 <= to; at += 4) {
      const first = (bytes[at] as number) | ((bytes[at + 1] as number) << 8)
      const second = ((bytes[at + 2] as number) << 16) | ((bytes[at + 3] as number) << 24)
      const word = first | second
      high = Math.imul(high ^ word ^ (high >>> 15), 0x01000193)
      low = Math.imul((low ^ word) + (low >>> 15), 0x85ebca6b)
    }
    this.#high = high
    this.#low = low
    for (; at < to; at++) this.addNumber(bytes[at] as number)
  }

  addText(text: string, from: number, to: number): void {
    for (let at = from; at < to; at++) this.addNumber(text.charCodeAt(at))
  }

  addNumber(code: number): void {
    this.#high = Math.imul(this.#high ^ code, 0x01000193)
    this.#low = Math.imul((this.#low ^ code) + (this.#low >>> 15), 0x85ebca6b)
  }

  copy(): PrefixHash {
    return new PrefixHash(this.#high, this.#low)
  }

  /** A whole number of 53 bits. `salt`: 32 bits that keep the same prompt in two lanes apart. */
  keyFor(salt: number): number {
    return ((this.#high ^ salt) >>> 0) * 2 ** 21 + ((this.#low ^ Math.imul(salt, 31)) >>> 11)
  }
}

/** The parts of a text that are hashed. `add`: receives where each begins and ends. */
export function sampleText(
  start: number,
  end: number,
  add: (from: number, to: number) => void,
): void {
  const length = end - start
  if (length <= WHOLE_LENGTH) return add(start, end)
  add(start, start + END_LENGTH)
  const step = (length - 2 * END_LENGTH) / SAMPLES
  for (let index = 0; index < SAMPLES; index++) {
    const from = start + END_LENGTH + Math.floor(index * step)
    add(from, from + SAMPLE_LENGTH)
  }
  add(end - END_LENGTH, end)
}
