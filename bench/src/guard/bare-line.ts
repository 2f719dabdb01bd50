import { SLOTS } from '../all-stages.js'

/**
 * The smallest possible queue: promises in a list, without stages. It slows down with its length only because of
 * garbage collection. A queue that stores more per call cannot be faster.
 */
export class BareLine {
  #free = SLOTS
  #first: Waiting | undefined
  #last: Waiting | undefined

  run(fn: () => Promise<number>): Promise<number> {
    if (this.#free > 0) {
      this.#free--
      return this.#begin(fn)
    }
    return new Promise((resolve) => {
      const waiting: Waiting = { fn, resolve, next: undefined }
      if (this.#last === undefined) this.#first = waiting
      else this.#last.next = waiting
      this.#last = waiting
    })
  }

  #begin(fn: () => Promise<number>): Promise<number> {
    return fn().then((value) => {
      this.#end()
      return value
    })
  }

  #end(): void {
    const next = this.#first
    if (next === undefined) {
      this.#free++
      return
    }
    this.#first = next.next
    if (this.#first === undefined) this.#last = undefined
    next.resolve(this.#begin(next.fn))
  }
}

interface Waiting {
  fn: () => Promise<number>
  resolve: (value: Promise<number>) => void
  next: Waiting | undefined
}
