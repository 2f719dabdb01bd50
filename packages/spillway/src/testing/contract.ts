/** A vendor's limit: a number of units in any window, counted exactly, call by call. */
export class Contract {
  readonly unit: string
  readonly #initial: number
  #limit: number
  readonly #windowMs: number
  readonly #times: number[] = []
  readonly #amounts: number[] = []
  /** Index of the first arrival that still counts, and the sum from there on. */
  #head = 0
  #used = 0

  constructor({ limit, windowMs, unit }: { limit: number; windowMs: number; unit: string }) {
    this.#initial = limit
    this.#limit = limit
    this.#windowMs = windowMs
    this.unit = unit
  }

  /** Time until `amount` fits; 0: now. An amount that never fits waits for a window. */
  waitMs(nowMs: number, amount: number): number {
    this.#forget(nowMs)
    let tooMany = this.#used + amount - this.#limit
    if (tooMany <= 0) return 0
    for (let index = this.#head; index < this.#times.length; index++) {
      tooMany -= this.#amounts[index] as number
      if (tooMany <= 0) return (this.#times[index] as number) + this.#windowMs - nowMs
    }
    return this.#windowMs
  }

  /** Changes the limit to this multiple of the initial one, rounded, at least 1. */
  scale(factor: number): void {
    this.#limit = Math.max(1, Math.round(this.#initial * factor))
  }

  charge(nowMs: number, amount: number): void {
    this.#times.push(nowMs)
    this.#amounts.push(amount)
    this.#used += amount
  }

  #forget(nowMs: number): void {
    while (
      this.#head < this.#times.length &&
      (this.#times[this.#head] as number) + this.#windowMs <= nowMs
    ) {
      this.#used -= this.#amounts[this.#head++] as number
    }
    if (this.#head < 1_024 || this.#head * 2 < this.#times.length) return
    this.#times.splice(0, this.#head)
    this.#amounts.splice(0, this.#head)
    this.#head = 0
  }
}
