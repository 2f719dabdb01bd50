import { describe, expect, it } from 'vitest'
import { wholeLines } from './lines.js'

/** Cuts as the writer does, until nothing is left. */
function piecesOf(text: string): string[] {
  const pieces: string[] = []
  let rest: Buffer = Buffer.from(text)
  while (rest.length > 0) {
    const piece = wholeLines(rest)
    pieces.push(piece.toString())
    rest = rest.subarray(piece.length)
  }
  return pieces
}

describe('log lines of several workers', () => {
  it('lines on a shared pipe are written whole, in pieces that a pipe takes at once', () => {
    const lines = Array.from({ length: 500 }, (_, i) => `${i} ${'é'.repeat(i % 90)}\n`)
    const pieces = piecesOf(lines.join(''))
    expect(pieces.join('')).toBe(lines.join(''))
    expect(pieces.length).toBeGreaterThan(5)
    for (const piece of pieces) {
      expect(piece.endsWith('\n')).toBe(true)
      expect(Buffer.byteLength(piece)).toBeLessThanOrEqual(4_096)
    }
  })

  it('a line longer than a pipe takes at once is written alone', () => {
    const long = `${'x'.repeat(10_000)}\n`
    expect(piecesOf(`a\n${long}b\n`)).toEqual(['a\n', long, 'b\n'])
    expect(piecesOf('y'.repeat(5_000))).toEqual(['y'.repeat(5_000)])
  })
})
