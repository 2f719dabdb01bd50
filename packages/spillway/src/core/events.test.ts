import diagnostics from 'node:diagnostics_channel'
import { describe, expect, it } from 'vitest'
import { EVENT_CHANNEL, emit, listening, onEvent, type SpillwayEvent } from './events.js'

const event: SpillwayEvent = { type: 'timeout.fired', name: 'x', kind: 'call', limitMs: 5 }

describe('event stream', () => {
  it('onEvent delivers events until the listener stops', () => {
    const seen: SpillwayEvent[] = []
    expect(listening()).toBe(false)
    const stop = onEvent((each) => seen.push(each))
    expect(listening()).toBe(true)
    emit(event)
    stop()
    emit(event)
    expect(seen).toEqual([event])
    expect(listening()).toBe(false)
  })

  it('a listener that throws does not affect emit() or other listeners', () => {
    const seen: SpillwayEvent[] = []
    const stops = [
      onEvent(() => {
        throw new Error('bad listener')
      }),
      onEvent((each) => seen.push(each)),
    ]
    emit(event)
    for (const stop of stops) stop()
    expect(seen).toEqual([event])
  })

  it('events are published on an ordinary diagnostics channel', () => {
    const seen: unknown[] = []
    const listener = (message: unknown) => seen.push(message)
    diagnostics.subscribe(EVENT_CHANNEL, listener)
    emit(event)
    diagnostics.unsubscribe(EVENT_CHANNEL, listener)
    expect(seen).toEqual([event])
  })
})
