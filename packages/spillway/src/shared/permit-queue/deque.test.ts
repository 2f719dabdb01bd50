import { describe, expect, it } from 'vitest'
import { fc } from '../../../test/fast-check.js'
import { TestCall } from '../../../test/queued-test-call.js'
import { CallDeque } from './deque.js'
import type { QueuedCall } from './queued-call.js'

let entered = 0

function entryOf(arrivedMs: number): QueuedCall {
  const entry = new TestCall({ arrivedMs })
  entry.join(entered++, arrivedMs)
  return entry
}

type Step =
  | { kind: 'come'; arrivedMs: number }
  | { kind: 'take'; end: 'first' | 'last' }
  | { kind: 'go'; index: number }

const steps = fc.array(
  fc.oneof(
    { weight: 6, arbitrary: fc.record({ kind: fc.constant('come'), arrivedMs: fc.nat(50) }) },
    {
      weight: 2,
      arbitrary: fc.record({ kind: fc.constant('take'), end: fc.constantFrom('first', 'last') }),
    },
    { weight: 2, arbitrary: fc.record({ kind: fc.constant('go'), index: fc.nat(200) }) },
  ),
  { maxLength: 400 },
) as fc.Arbitrary<Step[]>

describe('CallDeque', () => {
  it('calls stay ordered by age under random arrivals and removals', () => {
    fc.assert(
      fc.property(steps, (history) => {
        const line = new CallDeque()
        const waiting: QueuedCall[] = []
        for (const step of history) {
          if (step.kind === 'come') {
            const entry = entryOf(step.arrivedMs)
            line.insert(entry)
            waiting.push(entry)
            waiting.sort((a, b) => a.arrivedMs - b.arrivedMs || a.order - b.order)
          } else if (waiting.length > 0 && step.kind === 'take') {
            const entry = (step.end === 'first' ? waiting.shift() : waiting.pop())!
            expect(line[step.end]).toBe(entry)
            line.take(entry)
          } else if (waiting.length > 0 && step.kind === 'go') {
            const [entry] = waiting.splice(step.index % waiting.length, 1)
            entry!.state = 'gone'
            line.forget()
          }
          expect(line.length).toBe(waiting.length)
          expect(line.first).toBe(waiting[0])
          expect(line.last).toBe(waiting.at(-1))
        }
        expect(line.list()).toEqual(waiting)
      }),
      { numRuns: 300 },
    )
  })

  it('removed calls are released although the first call stays for ever', async () => {
    const line = new CallDeque()
    line.push(entryOf(0))
    const removed = Array.from({ length: 10_000 }, (_, index) => entryOf(index))
    for (const entry of removed) line.push(entry)
    for (const entry of removed.slice(0, -1)) {
      entry.state = 'gone'
      line.forget()
    }
    // Two calls wait, with at most a few removed ones in between.
    expect(line.length).toBe(2)
    expect(line.places).toBeLessThanOrEqual(2 * 2 + 32)
  })
})
