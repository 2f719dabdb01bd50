import { describe, expect, it } from 'vitest'
import type { PodStatus } from '../../../spillway/src/guard/fleet/pod-status.js'
import type { Membership } from '../../../spillway/src/shared/membership.js'
import { createVirtualClock } from '../../../spillway/src/testing/virtual-clock.js'
import { FleetWatch } from '../../src/feed/fleet-watch.js'
import type { Fleet } from '../../src/wire/fleet.js'

const STORE: Fleet['store'] = { status: 'memory', degraded: false, sinceAt: 0, problems: [] }

function vitals(calls: number, refused: number, waiting: number): PodStatus {
  return {
    version: '1',
    draining: false,
    drainRequested: false,
    pressure: undefined,
    pressureBy: undefined,
    store: 'memory',
    loopMs: 0,
    loopBusy: 0,
    memoryMb: 0,
    upMs: 0,
    notes: [],
    guards: [{ name: 'openai', lanes: [], calls, refused, active: 0, waiting, breaker: 0 }],
  }
}

describe('fleet figures of a pod', () => {
  /** Calls, refusals and decisions per second after each snapshot. */
  async function figuresOf(words: readonly PodStatus[]) {
    const clock = createVirtualClock()
    const watch = new FleetWatch({ pod: 'a' } as Membership, clock, () => {})
    const figures: (number | undefined)[][] = []
    for (const word of words) {
      watch.hearOwn(word)
      const [, calls, refused, , , , decided] = watch.tick(0, STORE).pods[0]?.guards[0] ?? []
      figures.push([calls, refused, decided])
      await clock.advance(1_000)
    }
    return figures
  }

  it('a queued call counts as decided when it starts or is refused, not when it arrives', async () => {
    const words = [vitals(0, 0, 0), vitals(100, 0, 80), vitals(110, 30, 0), vitals(110, 30, 0)]
    expect(await figuresOf(words)).toEqual([
      [0, 0, 0],
      [100, 0, 20],
      // More calls were refused than arrived: a third of those decided.
      [10, 30, 90],
      [0, 0, 0],
    ])
  })

  it('refused calls never exceed decided ones, even if a retry is refused later', async () => {
    expect(await figuresOf([vitals(5, 0, 0), vitals(5, 2, 0)])).toEqual([
      [0, 0, 0],
      [0, 2, 2],
    ])
  })
})
