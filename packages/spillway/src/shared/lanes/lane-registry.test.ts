import { describe, expect, it } from 'vitest'
import { fc } from '../../../test/fast-check.js'
import { onEvent, type SpillwayEvent } from '../../core/events.js'
import { createVirtualClock } from '../../testing/virtual-clock.js'
import { OTHER_LANE } from './lane-names.js'
import { LANE_REST_MS, LaneMap, LaneRegistry } from './lane-registry.js'

function createLanes(maxLanes: number, named: string[] = []) {
  const clock = createVirtualClock()
  const registry = new LaneRegistry({ name: 'vendor', clock, maxLanes, named })
  const busy = new Set<string>()
  const map = new LaneMap<{ lane: string }>(registry, {
    create: (lane) => ({ lane }),
    isIdle: ({ lane }) => !busy.has(lane),
  })
  const use = (name: string) => {
    const lane = registry.enter(name)
    map.of(lane)
    return lane
  }
  return { clock, registry, busy, map, use }
}

describe('a lane registry', () => {
  it('lane registry drops the least recently used idle lane with all its state', () => {
    const { registry, map, use } = createLanes(2)
    for (const name of ['a', 'b', 'a', 'c']) expect(use(name)).toBe(name)
    expect(registry.names()).toEqual(['c', 'a'])
    expect(map.get('b')).toBeUndefined()
    expect(map.size).toBe(2)
  })

  it('lane registry moves calls beyond maxLanes to (other) until a lane is idle', () => {
    const { busy, map, use } = createLanes(2)
    for (const name of ['a', 'b']) busy.add(use(name))
    expect(use('c')).toBe(OTHER_LANE)
    expect(use('a')).toBe('a')
    busy.delete('b')
    expect(use('c')).toBe('c')
    expect(map.get('b')).toBeUndefined()
  })

  it('lane registry never drops a lane whose attempts hold slots', () => {
    const { registry, use } = createLanes(1)
    use('a')
    registry.hold('a', 2)
    registry.release('a')
    expect(use('b')).toBe(OTHER_LANE)
    registry.release('a')
    expect(use('b')).toBe('b')
  })

  it('lane registry always has room for named lanes and the default lane, and drops neither', () => {
    const { registry, busy, use } = createLanes(1, ['named'])
    busy.add(use('a'))
    expect(use('named')).toBe('named')
    expect(use('default')).toBe('default')
    expect(use('b')).toBe(OTHER_LANE)
    busy.clear()
    for (const name of ['c', 'd', 'e']) expect(use(name)).toBe(name)
    expect(registry.has('named')).toBe(true)
    expect(registry.has('default')).toBe(true)
  })

  it('lane registry emits one event while calls share (other), and another after a minute without', async () => {
    const { clock, busy, use } = createLanes(1)
    const events: SpillwayEvent[] = []
    const stop = onEvent((event) => events.push(event))
    busy.add(use('a'))
    for (let i = 0; i < 100; i++) {
      use(`extra ${i}`)
      await clock.advance(1_000)
    }
    const full = { type: 'lanes.full', name: 'vendor', lane: OTHER_LANE, maxLanes: 1 }
    expect(events).toEqual([full])
    await clock.advance(60_000)
    use('later')
    expect(events).toEqual([full, full])
    stop()
  })

  it('lane registry creates nothing when a lane is looked up or expected', () => {
    const { registry, map } = createLanes(10)
    expect(registry.expected('a')).toBe('a')
    expect(map.get('a')).toBeUndefined()
    expect(registry.has('a')).toBe(false)
    expect(registry.size).toBe(0)
  })

  it('lane registry drops a lane that was idle for five minutes even if there is room', async () => {
    const { clock, registry, busy, use } = createLanes(10)
    busy.add(use('busy'))
    use('idle')
    await clock.advance(LANE_REST_MS)
    registry.sweep()
    expect(registry.names()).toEqual(['busy'])
  })

  it('lane registry drops a lane five minutes after it stopped being busy, not after its last call', async () => {
    const { clock, registry, busy, use } = createLanes(10)
    busy.add(use('a'))
    await clock.advance(LANE_REST_MS)
    registry.sweep()
    busy.clear()
    await clock.advance(LANE_REST_MS - 1)
    registry.sweep()
    expect(registry.has('a')).toBe(true)
    await clock.advance(1)
    registry.sweep()
    expect(registry.has('a')).toBe(false)
  })

  it('lane registry creates a lane again for the next call after it was dropped', async () => {
    const { clock, registry, map, use } = createLanes(10)
    use('a')
    const first = map.of('a')
    await clock.advance(LANE_REST_MS)
    registry.sweep()
    expect(registry.enter('a')).toBe('a')
    expect(registry.has('a')).toBe(true)
    expect(map.of('a')).not.toBe(first)
  })

  it('lane registry expects calls of new names in (other) only until a sweep or more maxLanes make room', async () => {
    const { clock, registry, busy, use } = createLanes(1)
    busy.add(use('a'))
    use('b')
    expect(registry.expected('c')).toBe(OTHER_LANE)
    busy.clear()
    await clock.advance(LANE_REST_MS)
    registry.sweep()
    expect(registry.expected('c')).toBe('c')
    busy.add(use('c'))
    use('d')
    expect(registry.expected('e')).toBe(OTHER_LANE)
    registry.configure(2, [])
    expect(registry.expected('e')).toBe('e')
  })

  it('lane registry never exceeds maxLanes nor drops busy, held or named lanes in random histories', () => {
    const name = fc.integer({ min: 0, max: 11 }).map((number) => `lane ${number}`)
    const step = fc.oneof(
      { weight: 4, arbitrary: fc.record({ kind: fc.constant('use' as const), name }) },
      fc.record({
        kind: fc.constantFrom('busy', 'idle', 'hold', 'release') as fc.Arbitrary<
          'busy' | 'idle' | 'hold' | 'release'
        >,
        name,
      }),
    )
    fc.assert(
      fc.property(
        fc.array(step, { maxLength: 80 }),
        fc.integer({ min: 1, max: 4 }),
        (steps, max) => {
          const { registry, busy, map, use } = createLanes(max, ['lane 0'])
          const held = new Map<string, number>()
          const protectedLanes = new Set<string>()
          for (const { kind, name } of steps) {
            const exists = registry.has(name)
            if (kind === 'use') {
              const lane = use(name)
              if (exists || name === 'lane 0') expect(lane).toBe(name)
              if (lane === 'lane 0') protectedLanes.add(lane)
            } else if (kind === 'busy' && exists) busy.add(name)
            else if (kind === 'idle') busy.delete(name)
            else if (kind === 'hold' && exists) {
              registry.hold(name, 1)
              held.set(name, (held.get(name) ?? 0) + 1)
            } else if (kind === 'release' && (held.get(name) ?? 0) > 0) {
              registry.release(name)
              held.set(name, (held.get(name) as number) - 1)
            }
            for (const lane of busy) expect(registry.has(lane)).toBe(true)
            for (const [lane, count] of held) if (count > 0) expect(registry.has(lane)).toBe(true)
            for (const lane of protectedLanes) expect(registry.has(lane)).toBe(true)
            // The named lane always fits.
            expect(registry.size).toBeLessThanOrEqual(max + 1)
            expect(map.size).toBeLessThanOrEqual(max + 2)
          }
        },
      ),
    )
  })
})
