/** The watch of a store, with a scripted store and virtual time. */
import { describe, expect, it } from 'vitest'
import type { PulseReply, PulseRequest } from '../../store/port.js'
import { StoreFailure } from '../../store/store-failure.js'
import { createVirtualClock } from '../../testing/virtual-clock.js'
import type { Spender } from './store-status.js'
import { StoreWatch } from './store-watch.js'

const USABLE_MS = 50
const WINDOW_MS = 10_000

function setup() {
  const clock = createVirtualClock()
  /** What happens, in order: pulses by their part, and calls of the spender by their name. */
  const log: string[] = []
  const pulsedMs: number[] = []
  const store = { down: false, tookMs: 0, epoch: 'first', lostUs: 0, pods: 1 }
  const pulse = async ({ part }: PulseRequest): Promise<PulseReply> => {
    log.push(part)
    pulsedMs.push(clock.now())
    if (store.down) throw new StoreFailure('not-sent', 'no connection')
    const { tookMs, epoch, lostUs, pods } = store
    if (tookMs > 0) await new Promise<void>((resolve) => clock.schedule(tookMs, resolve))
    const nowUs = clock.now() * 1_000
    return { nowUs, epoch, count: 1, lostUs, joined: pods, pods, rank: 0 }
  }
  const note = (name: string) => () => void log.push(name)
  const spender: Spender = {
    countsUntilUs: (usedUs) => usedUs + WINDOW_MS * 1_000,
    usableMs: USABLE_MS,
    wake: note('wake'),
    forgotten: note('forgotten'),
    report: async () => void log.push('tell'),
    refresh: note('refresh'),
    returned: note('returned'),
  }
  const options = { name: 'vendor', pod: 'a', expectedPods: 4, off: false }
  const watch = new StoreWatch({ ...options, clock, random: () => 1, pulses: { pulse } })
  const start = async () => {
    watch.start(spender)
    await clock.advance(10)
    expect(watch.status).toBe('shared')
    log.length = 0
  }
  const lose = async () => {
    store.down = true
    watch.failed(new StoreFailure('not-sent', 'no connection'))
    await clock.settle()
    expect(watch.status).toBe('unreachable')
    log.length = 0
  }
  return { clock, log, pulsedMs, store, watch, start, lose }
}

describe('store watch', () => {
  it('a returning store gets the reports of the outage before its replies are used', async () => {
    const { clock, log, store, watch, start, lose } = setup()
    await start()
    await lose()
    store.down = false
    await clock.advance(100)
    expect(watch.joined).toBe(true)
    expect(log.slice(0, 5)).toEqual(['untrusted', 'tell', 'joined', 'returned', 'wake'])
  })

  it('permits that are late ten times in a row for half a second make the store unreachable', async () => {
    const { clock, watch, start } = setup()
    await start()
    for (let reply = 1; reply < 10; reply++) {
      watch.permitted(USABLE_MS + 1)
      await clock.advance(60)
    }
    expect(watch.reachable).toBe(true)
    watch.permitted(USABLE_MS + 1)
    expect(watch.reachable).toBe(false)
    expect(watch.snapshot().why).toBe(
      'the store took 51 ms to answer; raise jitterMs if that is usual',
    )
  })

  it('permits that arrive in time never make the store unreachable', async () => {
    const { clock, watch, start } = setup()
    await start()
    for (let reply = 0; reply < 100; reply++) {
      watch.permitted(USABLE_MS)
      await clock.advance(60)
    }
    expect(watch.reachable).toBe(true)
  })

  it('a store that answers too slowly for permits is not used again', async () => {
    const { clock, store, watch, start, lose } = setup()
    await start()
    await lose()
    store.down = false
    store.tookMs = USABLE_MS + 1
    await clock.advance(5_000)
    expect(watch.status).toBe('unreachable')
    store.tookMs = USABLE_MS
    await clock.advance(2_000)
    expect(watch.status).toBe('shared')
  })

  it('the pauses between attempts grow, also while the store returns only for moments', async () => {
    const { clock, pulsedMs, store, watch, start, lose } = setup()
    await start()
    const pauses = async () => {
      await lose()
      pulsedMs.length = 0
      const lostMs = clock.now()
      await clock.advance(3_000)
      store.down = false
      await clock.advance(1_000)
      expect(watch.status).toBe('shared')
      return pulsedMs.slice(0, 3).map((ms, index) => ms - (pulsedMs[index - 1] ?? lostMs))
    }
    expect(await pauses()).toEqual([50, 100, 200])
    expect(await pauses()).toEqual([800, 800, 800])
    await clock.advance(10_000)
    expect(await pauses()).toEqual([50, 100, 200])
  })

  it('a store with another epoch makes the spender forget what it has reported', async () => {
    const { clock, log, store, watch, start } = setup()
    await start()
    store.epoch = 'second'
    store.lostUs = clock.now() * 1_000
    await clock.advance(1_000)
    expect(log[1]).toBe('forgotten')
    expect(watch.status).toBe('untrusted')
    expect(watch.reachable).toBe(true)
    expect(watch.joined).toBe(false)
    await clock.advance(WINDOW_MS)
    expect(watch.status).toBe('shared')
  })

  it('a silent store is checked after 40 ms while a command is in flight, and not otherwise', async () => {
    const { clock, pulsedMs, watch, start } = setup()
    await start()
    // Shortly after a regular pulse the next one is far away.
    while (pulsedMs.length < 2) await clock.advance(10)
    await clock.advance(100)
    const before = pulsedMs.length
    watch.commandSent()
    await clock.advance(45)
    expect(pulsedMs).toHaveLength(before + 1)
    watch.commandEnded()
    await clock.advance(200)
    expect(pulsedMs).toHaveLength(before + 1)
  })

  it('extra pulses to a slow store do not refresh the figures more than twice a second', async () => {
    const { clock, log, pulsedMs, watch, start } = setup()
    await start()
    await clock.advance(1_000)
    log.length = 0
    pulsedMs.length = 0
    for (let command = 0; command < 20; command++) {
      watch.commandSent()
      await clock.advance(50)
      watch.commandEnded()
    }
    expect(pulsedMs.length).toBeGreaterThan(8)
    expect(log.filter((name) => name === 'refresh').length).toBeLessThanOrEqual(2)
  })

  it('a pod counts on expectedPods during an outage, and afterwards on the pods it knew until they have reported', async () => {
    const { clock, store, watch, start, lose } = setup()
    store.pods = 6
    await start()
    expect(watch.fleet.pods).toBe(6)
    await lose()
    store.down = false
    store.pods = 1
    await clock.advance(1_000)
    expect([watch.status, watch.fleet.pods, watch.missing]).toEqual(['shared', 6, 5])
    await clock.advance(6_000)
    expect([watch.fleet.pods, watch.missing]).toEqual([1, 0])
    await lose()
    expect(watch.fleet.pods).toBe(4)
  })
})
