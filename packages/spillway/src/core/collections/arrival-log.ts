/** Arrival times and amounts: eight or sixteen bytes for each arrival. */
export class ArrivalLog {
  length = 0
  #times = new Float64Array(1_024)
  /** Created when an amount other than 1 arrives. */
  #amounts: Float64Array | undefined

  add(atMs: number, amount: number): void {
    if (this.length === this.#times.length) this.#grow()
    if (amount !== 1) this.#amounts ??= new Float64Array(this.#times.length).fill(1)
    if (this.#amounts !== undefined) this.#amounts[this.length] = amount
    this.#times[this.length++] = atMs
  }

  /** A copy. */
  get times(): Float64Array {
    return this.#times.slice(0, this.length)
  }

  /** The largest sum in any window of this length. Two arrivals exactly this far apart are in different windows. */
  mostIn(windowMs: number): number {
    let most = 0
    let inside = 0
    let oldest = 0
    for (let newest = 0; newest < this.length; newest++) {
      inside += this.#amountOf(newest)
      const newestMs = this.#times[newest] as number
      while (oldest <= newest && (this.#times[oldest] as number) + windowMs <= newestMs) {
        inside -= this.#amountOf(oldest++)
      }
      most = Math.max(most, inside)
    }
    return most
  }

  #amountOf(index: number): number {
    return this.#amounts?.[index] ?? 1
  }

  #grow(): void {
    this.#times = twice(this.#times)
    if (this.#amounts !== undefined) this.#amounts = twice(this.#amounts)
  }
}

function twice(numbers: Float64Array): Float64Array<ArrayBuffer> {
  const larger = new Float64Array(numbers.length * 2)
  larger.set(numbers)
  return larger
}
