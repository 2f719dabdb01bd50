/** "did you mean …?": finds the known name closest to a misspelt one, if one is close enough. */
export function suggest(word: string, known: readonly string[]): string | undefined {
  let best: string | undefined
  // A third of the letters may be wrong; a very short name may differ in one.
  let bestDistance = Math.max(1, Math.floor(word.length / 3)) + 1
  for (const candidate of known) {
    const distance = distanceBetween(word.toLowerCase(), candidate.toLowerCase())
    if (distance < bestDistance) {
      best = candidate
      bestDistance = distance
    }
  }
  return best
}

/** `window` for `windowMs` and `que` for `queue` count as one mistake, for any number of missing letters. */
function distanceBetween(word: string, candidate: string): number {
  const [shorter, longer] = word.length < candidate.length ? [word, candidate] : [candidate, word]
  if (shorter.length >= 3 && longer.startsWith(shorter)) return 1
  return editDistance(word, candidate)
}

/** Number of letters to add, drop, replace or swap with their neighbour to turn one name into the other. */
function editDistance(from: string, to: string): number {
  let beforeLast: number[] = []
  let last = Array.from({ length: to.length + 1 }, (_, column) => column)
  for (let row = 1; row <= from.length; row++) {
    const current = [row]
    for (let column = 1; column <= to.length; column++) {
      const same = from[row - 1] === to[column - 1]
      let cheapest = Math.min(
        at(last, column) + 1,
        at(current, column - 1) + 1,
        at(last, column - 1) + (same ? 0 : 1),
      )
      const swapped =
        row > 1 &&
        column > 1 &&
        from[row - 1] === to[column - 2] &&
        from[row - 2] === to[column - 1]
      if (swapped) cheapest = Math.min(cheapest, at(beforeLast, column - 2) + 1)
      current.push(cheapest)
    }
    beforeLast = last
    last = current
  }
  return at(last, to.length)
}

function at(row: readonly number[], column: number): number {
  return row[column] ?? Number.POSITIVE_INFINITY
}
