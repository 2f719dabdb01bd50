/** Iterates what a reader gets, as Node iterates a stream: one step at a time, in order. */
export interface IterationOptions {
  /** The stream goes on to be read when the iteration is left. */
  preventCancel?: boolean
}

export class StreamIterator<C> implements AsyncIterableIterator<C> {
  readonly #reader: ReadableStreamDefaultReader<C>
  readonly #preventCancel: boolean
  #lastStep: Promise<unknown> | undefined
  #over = false

  constructor(
    reader: ReadableStreamDefaultReader<C>,
    { preventCancel = false }: IterationOptions = {},
  ) {
    this.#reader = reader
    this.#preventCancel = preventCancel
  }

  [Symbol.asyncIterator](): this {
    return this
  }

  next(): Promise<IteratorResult<C>> {
    return this.#inTurn(() => this.#read())
  }

  return(value?: unknown): Promise<IteratorResult<C>> {
    return this.#inTurn(() => this.#leave(value))
  }

  #inTurn<R>(step: () => Promise<R>): Promise<R> {
    const done = this.#lastStep === undefined ? step() : this.#lastStep.then(step, step)
    this.#lastStep = done
    return done
  }

  async #read(): Promise<IteratorResult<C>> {
    if (this.#over) return { done: true, value: undefined }
    try {
      const result = await this.#reader.read()
      if (!result.done) return result
    } catch (error) {
      this.#end()
      throw error
    }
    this.#end()
    return { done: true, value: undefined }
  }

  async #leave(value: unknown): Promise<IteratorResult<C>> {
    if (!this.#over) {
      const left = this.#preventCancel ? undefined : this.#reader.cancel(value)
      this.#end()
      await left
    }
    return { done: true, value: value as never }
  }

  #end(): void {
    this.#over = true
    this.#reader.releaseLock()
  }
}
