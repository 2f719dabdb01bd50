/**
 * The pieces of a body as they come. Each costs some hundred bytes besides its own: somebody who sends a byte at
 * a time must not fill the memory with them.
 */
const MOST_PIECES = 256

const NOTHING = Buffer.alloc(0)

export function addPiece(pieces: Buffer[], piece: Buffer): void {
  pieces.push(piece)
  if (pieces.length <= MOST_PIECES) return
  const joined = Buffer.concat(pieces)
  pieces.length = 0
  pieces.push(joined)
}

export function wholeOf(pieces: readonly Buffer[]): Buffer {
  const [first = NOTHING] = pieces
  return pieces.length <= 1 ? first : Buffer.concat(pieces)
}
