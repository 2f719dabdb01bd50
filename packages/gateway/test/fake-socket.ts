/** A socket without a network: `push` delivers input, and writes are recorded. Independent of time. */
import type { Socket } from 'node:net'
import { Duplex } from 'node:stream'

export class FakeSocket extends Duplex {
  /** All written bytes, as a Latin-1 string. */
  output = ''
  writes = 0
  /** All pushed bytes. */
  bytesRead = 0
  /** Error with which writes fail. */
  failure: Error | undefined
  /** Writes that are still buffered. Undefined: writes are sent at once. */
  held: (() => void)[] | undefined

  constructor() {
    super({ allowHalfOpen: true })
  }

  get asSocket(): Socket {
    return this as unknown as Socket
  }

  override _read(): void {}

  override push(chunk: Buffer | string | null): boolean {
    this.bytesRead += chunk?.length ?? 0
    return super.push(chunk)
  }

  override _write(chunk: Buffer, _: BufferEncoding, done: (error?: Error) => void): void {
    this.writes++
    this.output += chunk.toString('latin1')
    if (this.held === undefined) done(this.failure)
    else this.held.push(() => done(this.failure))
  }

  override _writev(chunks: { chunk: Buffer }[], done: (error?: Error) => void): void {
    this._write(Buffer.concat(chunks.map(({ chunk }) => chunk)), 'latin1', done)
  }

  /** As a socket of `node:net` does. */
  destroySoon(): void {
    if (this.writable) this.end()
    if (this.writableFinished) this.destroy()
    else this.once('finish', this.destroy)
  }
}

/** Waits for `count` turns of the event loop. */
export async function turns(count = 1): Promise<void> {
  for (let i = 0; i < count; i++) await new Promise((resolve) => setImmediate(resolve))
}
