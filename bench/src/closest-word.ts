/** Suggests a known name: one that begins with the given text, or one with a similar spelling. */
export function closestWord(word: string, known: readonly string[]): string | undefined {
  const completed = known.find((candidate) => word !== '' && candidate.startsWith(word))
  if (completed !== undefined) return completed
  const mistakes = (candidate: string) => editDistance(word, candidate)
  const best = known.toSorted((a, b) => mistakes(a) - mistakes(b))[0]
  // A third of the letters may be wrong; in a short word two, because a swap counts as two.
  const acceptable = Math.max(2, word.length / 3)
  return best !== undefined && mistakes(best) <= acceptable ? best : undefined
}

/** Number of letters to add, drop or replace to turn one word into the other. */
function editDistance(from: string, to: string): number {
  let row = Array.from({ length: to.length + 1 }, (_, column) => column)
  for (const letter of from) {
    const above = row
    row = [above[0]! + 1]
    for (let column = 1; column <= to.length; column++) {
      const replaced = above[column - 1]! + (letter === to[column - 1] ? 0 : 1)
      row.push(Math.min(replaced, above[column]! + 1, row[column - 1]! + 1))
    }
  }
  return row[to.length]!
}
