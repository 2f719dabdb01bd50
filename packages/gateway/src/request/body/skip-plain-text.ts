/**
 * Skips groups of four words of four bytes each without a quote, backslash or control character, as far as possible.
 * `from`: a position in the chunk that is a multiple of four in memory. This loop reads nearly all bytes of a long prompt,
 * and is eight times as fast as one over bytes, which took a quarter of the gateway's CPU time with prompts of 500 kB.
 */
export function endOfPlainWords({ buffer, byteOffset, length }: Buffer, from: number): number {
  const words = new Int32Array(buffer, byteOffset + from, (length - from) >> 2)
  const last = words.length - 3
  let index = 0
  while (index < last) {
    const found =
      signsIn(words[index] as number) |
      signsIn(words[index + 1] as number) |
      signsIn(words[index + 2] as number) |
      signsIn(words[index + 3] as number)
    if ((found & 0x80808080) !== 0) break
    index += 4
  }
  return from + 4 * index
}

/**
 * Sets the highest bit of a byte that ends a text; other bits mean nothing. A subtraction sets the highest bit of a byte
 * that is smaller than what is subtracted. XOR with 2 exchanges the quote (0x22) with the space (0x20), so that the quote
 * and all control characters are smaller than 0x21. XOR with a backslash makes the backslash smaller than 1. Bytes whose
 * highest bit was set before end no text.
 */
function signsIn(word: number): number {
  const small = (word ^ 0x02020202) - 0x21212121
  const backslash = (word ^ 0x5c5c5c5c) - 0x01010101
  return (small | backslash) & ~word
}
