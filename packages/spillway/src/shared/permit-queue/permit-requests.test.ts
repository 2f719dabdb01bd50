/** Slots and probes of a batch of calls whose breaker is not closed. */
import { describe, expect, it } from 'vitest'
import { SpillwayError } from '../../core/errors.js'
import { createVirtualClock } from '../../testing/virtual-clock.js'
import type { BreakerPermit } from '../circuit-breaker/api.js'
import { CallQueue } from './call-queue.js'
import { PermitDispatcher } from './permit-dispatcher.js'
import type { AttemptPermits, BreakerPort } from './ports.js'
import { QueuedCall } from './queued-call.js'

const SLOTS = 10

/** A pod with ten slots and no limits. */
function createPod(breaker: BreakerPort) {
  const clock = createVirtualClock()
  const queue = new CallQueue({
    clock,
    size: 100,
    timeoutMs: 10_000,
    targetMs: 1_000,
    agingMs: 1_000,
  })
  const slots = { reserved: 0, active: 0 }
  const free = () => SLOTS - slots.reserved - slots.active
  const dispatcher = new PermitDispatcher({
    clock,
    queue,
    breaker,
    limits: undefined,
    mayWait: true,
    capacity: {
      get full() {
        return free() === 0
      },
      free,
      paceWaitMs: () => 0,
      reserve: (count) => {
        slots.reserved += count
      },
      giveUp: () => {
        slots.reserved--
      },
      admit: () => {
        slots.reserved--
        slots.active++
      },
      start: () => {
        slots.active++
      },
    },
    storeError: () => refusal(),
    limitedError: () => refusal(),
    busyError: () => refusal(),
  })

  class Call extends QueuedCall<AttemptPermits> {
    readonly lane = 'default'
    readonly priority = 2
    readonly arrivedMs = clock.now()
    readonly deadlineMs = Number.POSITIVE_INFINITY
    readonly signal: AbortSignal | undefined
    readonly cost = undefined
    costs = []
    costsUnder = undefined
    fate: 'waiting' | 'admitted' | 'refused' | 'aborted' = 'waiting'
    readonly #onRefused: () => void

    constructor(signal?: AbortSignal, onRefused = () => {}) {
      super()
      this.signal = signal
      this.#onRefused = onRefused
    }

    admit(): void {
      this.fate = 'admitted'
    }

    refuse(): void {
      this.fate = 'refused'
      this.#onRefused()
    }

    onLeave(): void {
      this.fate = 'refused'
    }

    onAborted(): void {
      this.fate = 'aborted'
      dispatcher.left(this)
    }
  }

  const arrive = (call: Call) => {
    queue.join(call, clock.now(), 0)
    dispatcher.arrived(call)
  }
  return { clock, slots, Call, arrive }
}

const refusal = () =>
  new SpillwayError({
    code: 'CIRCUIT_OPEN',
    stage: 'breaker',
    scope: 'shared',
    explain: () => 'open',
  })
const PROBE = { probe: true } as BreakerPermit

describe('calls whose breaker is not closed', () => {
  it('a call that leaves after its own breaker reply gives back its slot and its probe', async () => {
    const exited: BreakerPermit[] = []
    let requested = 0
    let reply = () => {}
    const replied = new Promise<void>((resolve) => {
      reply = resolve
    })
    const { clock, slots, Call, arrive } = createPod({
      isClear: () => false,
      enter: () => {
        const isFirst = requested++ === 0
        return replied.then(() => (isFirst ? PROBE : refusal()))
      },
      exit: (permit) => void exited.push(permit),
    })
    const abort = new AbortController()
    // If one of several calls fails, its caller aborts the others.
    const first = new Call(abort.signal)
    const second = new Call(undefined, () => abort.abort())
    // A busy pod requests the permits of both at once.
    slots.active = SLOTS
    arrive(first)
    arrive(second)
    slots.active = 0
    arrive(new Call())
    reply()
    await clock.settle()
    expect([first.fate, second.fate]).toEqual(['aborted', 'refused'])
    expect(slots).toEqual({ reserved: 0, active: 0 })
    expect(exited).toEqual([PROBE])
  })

  it('calls behind those that the breaker refuses use the free slots at once', async () => {
    const { clock, slots, Call, arrive } = createPod({
      isClear: () => false,
      enter: () => refusal(),
      exit: () => {},
    })
    slots.active = SLOTS
    const calls = Array.from({ length: 3 * SLOTS }, () => new Call())
    for (const call of calls) arrive(call)
    slots.active = 0
    const last = new Call()
    arrive(last)
    await clock.settle()
    expect([...calls, last].map(({ fate }) => fate)).toEqual(Array(3 * SLOTS + 1).fill('refused'))
    expect(slots).toEqual({ reserved: 0, active: 0 })
  })
})
