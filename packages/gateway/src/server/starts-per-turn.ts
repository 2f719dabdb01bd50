/**
 * Limits how many requests begin in one turn of the event loop. Node accepts one connection in each turn. A busy
 * gateway receives many requests in a turn, and if it began all of them, new connections would wait for seconds
 * before it knows them and can refuse them. With this limit it accepts at least one connection for every few requests.
 */
const MOST_STARTS = 4

export class StartsPerTurn {
  /** In this turn. */
  #started = 0
  #waiting: (() => void)[] = []
  #scheduled = false

  /** Calls `start` at once, or in one of the next turns, in order. */
  add(start: () => void): void {
    this.#waiting.push(start)
    this.#startSome()
  }

  #startSome(): void {
    while (this.#started < MOST_STARTS) {
      const start = this.#waiting.shift()
      if (start === undefined) break
      this.#started++
      start()
    }
    if (this.#scheduled) return
    this.#scheduled = true
    setImmediate(() => {
      this.#scheduled = false
      this.#started = 0
      if (this.#waiting.length > 0) this.#startSome()
    })
  }
}
