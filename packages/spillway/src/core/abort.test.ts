import { getEventListeners } from 'node:events'
import { describe, expect, it } from 'vitest'
import { checkSignal, LeaveSignal, onAbort } from './abort.js'

describe.each(['AbortSignal', 'LeaveSignal'] as const)('onAbort of an %s', (kind) => {
  function createSignal() {
    const log: string[] = []
    const note = (text: string) => () => void log.push(text)
    if (kind === 'LeaveSignal') {
      const signal = new LeaveSignal()
      return { signal, abort: () => signal.abort(new Error('gone')), log, note }
    }
    const controller = new AbortController()
    const abort = () => controller.abort(new Error('gone'))
    return { signal: controller.signal, abort, log, note }
  }

  it(`every listener of a ${kind} is called once, in order`, () => {
    const { signal, abort, log, note } = createSignal()
    for (const name of ['a', 'b', 'c']) onAbort(signal, note(name))
    expect(log).toEqual([])
    abort()
    abort()
    expect(log).toEqual(['a', 'b', 'c'])
    expect(signal.aborted).toBe(true)
    expect(signal.reason).toMatchObject({ message: 'gone' })
  })

  it(`a listener of a ${kind} that was removed is not called, and the others are`, () => {
    const { signal, abort, log, note } = createSignal()
    const [first, second] = [onAbort(signal, note('a')), onAbort(signal, note('b'))]
    onAbort(signal, note('c'))
    second()
    second()
    first()
    onAbort(signal, note('d'))
    abort()
    expect(log.sort()).toEqual(['c', 'd'])
  })

  it(`the same function may listen twice to a ${kind}, and be removed once`, () => {
    const { signal, abort, log, note } = createSignal()
    const same = note('same')
    onAbort(signal, same)
    const remove = onAbort(signal, same)
    onAbort(signal, same)
    remove()
    abort()
    expect(log).toEqual(['same', 'same'])
  })

  it(`a listener of a ${kind} that is aborted already is called at once`, () => {
    const { signal, abort, log, note } = createSignal()
    abort()
    onAbort(signal, note('late'))()
    expect(log).toEqual(['late'])
  })
})

describe('listeners on an AbortSignal', () => {
  it('many calls share one listener, which is removed with the last of them', () => {
    const { signal } = new AbortController()
    const count = () => getEventListeners(signal, 'abort').length
    const remove = Array.from({ length: 100 }, () => onAbort(signal, () => {}))
    expect(count()).toBe(1)
    for (const one of remove.slice(1)) one()
    expect(count()).toBe(1)
    remove[0]?.()
    expect(count()).toBe(0)
    onAbort(signal, () => {})()
    expect(count()).toBe(0)
  })
})

describe('checkSignal', () => {
  it('signals of Node, of Spillway and of other implementations are accepted', () => {
    const other = { addEventListener() {}, removeEventListener() {} }
    for (const signal of [new AbortController().signal, new LeaveSignal(), other]) {
      expect(() => checkSignal(signal)).not.toThrow()
    }
  })

  it.each([
    [null, 'got null'],
    [7, 'got 7'],
    ['abort', 'got abort'],
    [{}, 'got an object'],
    [new AbortController(), 'got an object'],
    [{ addEventListener() {} }, 'got an object'],
    [{ removeEventListener() {} }, 'got an object'],
  ])('%j is refused as a signal: %s', (signal, message) => {
    expect(() => checkSignal(signal)).toThrow(`signal: must be an AbortSignal, ${message}; `)
  })
})
