import type { ServerResponse } from 'node:http'
import { Writable } from 'node:stream'
import { describe, expect, it } from 'vitest'
import { createVirtualClock } from '../../../spillway/src/testing/virtual-clock.js'
import { FeedReader } from '../../src/feed/reader.js'

/** A response whose other end reads only on request. */
class Stuck extends Writable {
  #taken: (() => void) | undefined
  #reads = false

  override _write(_: Buffer, __: string, done: () => void): void {
    if (this.#reads) done()
    else this.#taken = done
  }

  writeHead(): void {}

  readOn(): void {
    this.#reads = true
    this.#taken?.()
  }
}

function setup() {
  const stuck = new Stuck()
  let ended = 0
  const reader = new FeedReader(stuck as unknown as ServerResponse, 'open', () => ended++)
  return { stuck, reader, ended: () => ended }
}

const TICK = 'x'.repeat(100_000)
const turn = () => new Promise((resolve) => setImmediate(resolve))

describe('slow feed reader', () => {
  it('feed buffers no more for a slow reader than is in flight', () => {
    const { stuck, reader } = setup()
    const sent = Array.from({ length: 50 }, (_, second) => reader.send(TICK, second * 100))
    expect(sent.filter(Boolean).length).toBe(3)
    expect(stuck.writableLength).toBeLessThan(400_000)
  })

  it('a slow reader gets no messages until it has caught up, and then the current state', async () => {
    const { stuck, reader } = setup()
    for (let second = 0; second < 10; second++) reader.send(TICK, second * 1_000)
    expect(reader.isBack).toBe(false)
    stuck.readOn()
    await turn()
    // Later messages make no sense without a full snapshot.
    expect(reader.isBack).toBe(true)
    expect(reader.send('one more', 11_000)).toBe(false)
    reader.resume()
    expect(reader.isBack).toBe(false)
    expect(reader.send('one more', 12_000)).toBe(true)
  })

  it('a reader that takes nothing for 30 s is disconnected', async () => {
    const { stuck, reader, ended } = setup()
    for (let second = 0; second <= 35; second++) reader.send(TICK, second * 1_000)
    await turn()
    expect(stuck.destroyed).toBe(true)
    expect(ended()).toBe(1)
    expect(reader.send('anything', 40_000)).toBe(false)
  })
  it('a reader that does not take the history within 30 s is disconnected', async () => {
    const { stuck, reader, ended } = setup()
    const clock = createVirtualClock()
    reader.send(TICK, 0)
    const drained = reader.drained(clock)
    await clock.advance(29_000)
    expect(reader.ended).toBe(false)
    await clock.advance(2_000)
    await drained
    expect(stuck.destroyed).toBe(true)
    expect(reader.ended).toBe(true)
    expect(ended()).toBe(1)
  })
})
