import { describe, expect, it } from 'vitest'
import { DrainTime } from '../../local/drain-time.js'
import { tokenBucket } from '../../local/rate-limiter/token-bucket.js'
import { LaneRegistry } from '../../shared/lanes/lane-registry.js'
import { CallQueue } from '../../shared/permit-queue/call-queue.js'
import { createVirtualClock } from '../../testing/virtual-clock.js'
import type { StageAttempt } from '../pipeline/stage.js'
import { ConcurrencyStage } from './concurrency.js'
import { PaceStage } from './pace.js'

const LANE = 'default'

/** Slots and pace of a pod, without a store. */
function createPod(limit: number, burst?: number) {
  const clock = createVirtualClock()
  const calls = new CallQueue({ clock, size: 0, timeoutMs: 1_000, targetMs: 1, agingMs: 1 })
  const common = { guard: 'vendor', calls, mayWait: true, shadow: false }
  const pace =
    burst === undefined
      ? undefined
      : new PaceStage({
          ...common,
          pace: { limit: 2, windowMs: 1_000, burst },
          bucket: tokenBucket(2, 1_000, burst),
          active: () => slots.active,
        })
  const registry = new LaneRegistry({ name: 'vendor', clock })
  const slots: ConcurrencyStage = new ConcurrencyStage({
    ...common,
    clock,
    limit,
    graceMs: 0,
    laneLimits: undefined,
    registry,
    pace,
    drainTime: new DrainTime(() => 0.5),
  })
  const start = () => {
    slots.start(LANE)
    pace?.started({ startMs: 0 } as StageAttempt)
  }
  const cancel = () => {
    slots.cancel(LANE)
    pace?.cancel()
  }
  return { slots, start, cancel }
}

describe('slots and pace of a pod', () => {
  it('a slot is free, then reserved, then in use until its call ends', () => {
    const { slots } = createPod(3)
    slots.reserve(2, LANE)
    expect(slots.free(0)).toBe(1)
    slots.giveUp(LANE)
    slots.admit()
    expect(slots).toMatchObject({ active: 1, reserved: 0 })
    expect(slots.free(0)).toBe(2)
    slots.release({ laneInUse: LANE } as StageAttempt, 'success', undefined)
    expect(slots.free(0)).toBe(3)
  })

  it('a pace token is spent only when a call really starts', () => {
    const { slots, start, cancel } = createPod(10, 2)
    slots.reserve(2, LANE)
    expect(slots.free(0)).toBe(0)
    slots.giveUp(LANE)
    expect(slots.free(0)).toBe(1)
    slots.admit()
    // An admitted call counts before it has begun.
    expect(slots.free(0)).toBe(1)
    cancel()
    expect(slots.free(0)).toBe(2)
    expect(slots.active).toBe(0)
    start()
    expect(slots.free(0)).toBe(1)
    expect(slots.active).toBe(1)
  })

  it('paceWaitMs() is the wait for the pace, or zero if slots are missing', () => {
    const { slots, start } = createPod(2, 1)
    expect(slots.paceWaitMs(0)).toBe(0)
    start()
    expect(slots.paceWaitMs(0)).toBe(500)
    start()
    expect(slots.paceWaitMs(0)).toBe(0)
  })

  it('slots that are reserved or about to start count for the wait for the pace', () => {
    const { slots } = createPod(3, 1)
    slots.reserve(1, LANE)
    expect(slots.paceWaitMs(0)).toBe(500)
    slots.admit()
    expect(slots.paceWaitMs(0)).toBe(500)
    slots.reserve(2, LANE)
    // All slots are taken, so a call waits for a slot and not for the pace.
    expect(slots.paceWaitMs(0)).toBe(0)
  })

  it('slots follow a limit that changes', () => {
    const { slots } = createPod(1)
    slots.start(LANE)
    slots.limit = 3
    expect(slots.free(0)).toBe(2)
    slots.limit = 0
    expect(slots.free(0)).toBeLessThanOrEqual(0)
  })
})
