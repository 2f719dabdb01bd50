import { expect, it } from 'vitest'
import { addPiece, wholeOf } from './pieces.js'

it('a body that arrives byte by byte is kept in few pieces and stays unchanged', () => {
  const pieces: Buffer[] = []
  const bytes = Buffer.from(Array.from({ length: 10_000 }, (_, i) => i % 251))
  for (const byte of bytes) addPiece(pieces, Buffer.from([byte]))
  expect(pieces.length).toBeLessThan(300)
  expect(wholeOf(pieces).equals(bytes)).toBe(true)
})

it('a body in one piece is not copied, and a body without pieces is empty', () => {
  const pieces: Buffer[] = []
  expect(wholeOf(pieces).length).toBe(0)
  const piece = Buffer.from('all of it')
  addPiece(pieces, piece)
  expect(wholeOf(pieces)).toBe(piece)
})
