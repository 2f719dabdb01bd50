import { describe, expect, it, vi } from 'vitest'
import { fc } from '../../../test/fast-check.js'
import { SseFrames } from './sse-frames.js'

/** Bytes that a run searches and copies, whatever the time it takes. */
function countWork(run: () => void): number {
  let bytes = 0
  const search = Buffer.prototype.lastIndexOf
  const copy = Buffer.prototype.copy
  const concat = Buffer.concat
  vi.spyOn(Buffer.prototype, 'lastIndexOf').mockImplementation(function (this: Buffer, ...args) {
    bytes += this.length
    return search.apply(this, args as never)
  })
  vi.spyOn(Buffer.prototype, 'copy').mockImplementation(function (this: Buffer, ...args) {
    const copied = copy.apply(this, args as never)
    bytes += copied
    return copied
  })
  vi.spyOn(Buffer, 'concat').mockImplementation((pieces, length) => {
    const joined = concat(pieces, length)
    bytes += joined.length
    return joined
  })
  try {
    run()
  } finally {
    vi.restoreAllMocks()
  }
  return bytes
}

function pushAll(frames: SseFrames, bytes: Buffer, pieceBytes: number): string[] {
  const passed: string[] = []
  for (let at = 0; at < bytes.length; at += pieceBytes) {
    const piece = frames.push(Buffer.from(bytes.subarray(at, at + pieceBytes)))
    if (piece.length > 0) passed.push(piece.toString('latin1'))
  }
  return passed
}

describe('SseFrames', () => {
  it('the work for an event that arrives byte by byte is proportional to its size', () => {
    const event = Buffer.from(`data: ${'x'.repeat(50_000)}\n\n`)
    const work = countWork(() => {
      expect(pushAll(new SseFrames(), event, 1)).toEqual([event.toString()])
    })
    expect(work).toBeLessThan(20 * event.length)
  })

  it('the work for events that arrive byte by byte does not depend on the events before them', () => {
    const events = Buffer.from(`data: ${'x'.repeat(100)}\n\n`.repeat(500))
    const work = countWork(() => {
      expect(pushAll(new SseFrames(), events, 1)).toHaveLength(500)
    })
    expect(work).toBeLessThan(20 * events.length)
  })

  it('bytes pass unchanged and only at the ends of events, however the stream is cut', () => {
    const part = fc.constantFrom('data: a', '\n', '\r', '\r\n', '\n\n', '\r\n\r\n', '\r\r', 'b')
    fc.assert(
      fc.property(
        fc.array(part, { maxLength: 40 }),
        fc.integer({ min: 1, max: 9 }),
        (parts, size) => {
          const text = parts.join('')
          const frames = new SseFrames()
          const passed = pushAll(frames, Buffer.from(text), size)
          for (const piece of passed) expect(piece).toMatch(/(\n\n|\r\n\r\n|\r\r)$/)
          const rest = frames.rest().toString()
          expect(passed.join('') + rest).toBe(text)
          expect(rest).not.toMatch(/\n\n|\r\n\r\n|\r\r/)
        },
      ),
    )
  })

  it('bytes that were passed on do not change when more arrive', () => {
    const frames = new SseFrames()
    frames.push(Buffer.from('data: one'))
    const first = frames.push(Buffer.from('\n\ndata: t'))
    frames.push(Buffer.from('wo\n'))
    expect(first.toString()).toBe('data: one\n\n')
    expect(frames.push(Buffer.from('\n')).toString()).toBe('data: two\n\n')
  })

  it('unwanted events are dropped, whole, in pieces and at the end of the stream', () => {
    const text = 'data: a\n\ndata: drop 1\r\n\r\ndata: caf\u00e9\n\ndata: drop 2\r\rdata: b\n\n'
    for (const size of [1, 7, 1_000]) {
      const frames = new SseFrames((event) => event.includes('drop'))
      const passed = pushAll(frames, Buffer.from(text), size).join('')
      expect(Buffer.from(passed, 'latin1').toString()).toBe(
        'data: a\n\ndata: caf\u00e9\n\ndata: b\n\n',
      )
      frames.push(Buffer.from('data: drop 3'))
      expect(frames.rest().toString()).toBe('')
      frames.push(Buffer.from('data: c'))
      expect(frames.rest().toString()).toBe('data: c')
      expect(frames.rest().toString()).toBe('')
    }
  })

  it('an event of more than 1 MiB passes in pieces', () => {
    const frames = new SseFrames()
    const piece = Buffer.alloc(300_000, 'x')
    const passed = [1, 2, 3, 4].map(() => frames.push(piece).length)
    expect(passed).toEqual([0, 0, 0, 1_200_000])
  })
})
