/**
 * Names sorted by a number, and by name where numbers are equal, like a sorted set of Redis. A heap
 * in which removed and moved entries stay until they come up, or until they are most of it.
 */
export class SortedIds {
  readonly #scores = new Map<string, number>()
  #heap: [score: number, id: string][] = []

  get size(): number {
    return this.#scores.size
  }

  score(id: string): number | undefined {
    return this.#scores.get(id)
  }

  set(id: string, score: number): void {
    if (this.#scores.get(id) === score) return
    this.#scores.set(id, score)
    if (this.#heap.length > 2 * this.#scores.size + 64) this.#rebuild()
    else this.#push([score, id])
  }

  delete(id: string): boolean {
    return this.#scores.delete(id)
  }

  /** The smallest. */
  first(): { id: string; score: number } | undefined {
    for (;;) {
      const [top] = this.#heap
      if (top === undefined) return undefined
      const [score, id] = top
      if (this.#scores.get(id) === score) return { id, score }
      this.#pop()
    }
  }

  /** All names in order, for displays. */
  sorted(): string[] {
    return Array.from(this.#scores, ([id, score]) => [score, id] as [number, string])
      .sort((one, other) => (before(one, other) ? -1 : 1))
      .map(([, id]) => id)
  }

  #rebuild(): void {
    this.#heap = []
    for (const [id, score] of this.#scores) this.#push([score, id])
  }

  #push(entry: [number, string]): void {
    const heap = this.#heap
    let at = heap.length
    heap.push(entry)
    while (at > 0) {
      const parent = (at - 1) >> 1
      if (!before(entry, heap[parent] as [number, string])) break
      heap[at] = heap[parent] as [number, string]
      at = parent
    }
    heap[at] = entry
  }

  #pop(): void {
    const heap = this.#heap
    const last = heap.pop() as [number, string]
    if (heap.length === 0) return
    let at = 0
    for (;;) {
      let child = 2 * at + 1
      if (child >= heap.length) break
      const right = heap[child + 1]
      if (right !== undefined && before(right, heap[child] as [number, string])) child++
      if (!before(heap[child] as [number, string], last)) break
      heap[at] = heap[child] as [number, string]
      at = child
    }
    heap[at] = last
  }
}

function before([score, id]: [number, string], [otherScore, otherId]: [number, string]): boolean {
  return score === otherScore ? id < otherId : score < otherScore
}
