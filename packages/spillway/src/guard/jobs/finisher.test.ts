import { expect, it } from 'vitest'
import type { Finished, JobEnd } from '../../store/queue-port.js'
import { createVirtualClock } from '../../testing/virtual-clock.js'
import { Finisher } from './finisher.js'

const LEASE_MS = 1_000
const END = { id: 'job-1' } as unknown as JobEnd

function setup(send: () => Promise<Finished[]>) {
  const clock = createVirtualClock()
  const replies: (Finished | undefined)[] = []
  let sent = 0
  const finisher = new Finisher({
    clock,
    leaseMs: LEASE_MS,
    send() {
      sent++
      return send()
    },
    onFinished: (_, finished) => replies.push(finished),
  })
  return { clock, finisher, replies, sent: () => sent }
}

it('a result that cannot be sent is sent again until the lease of its job ends, and is then unknown', async () => {
  const { clock, finisher, replies, sent } = setup(() => Promise.reject(new Error('unreachable')))
  finisher.add(END)
  const drained = finisher.drain()
  await clock.advance(LEASE_MS / 2)
  expect(replies).toEqual([])
  expect(sent()).toBeGreaterThan(1)
  await clock.advance(2 * LEASE_MS)
  expect(replies).toEqual([undefined])
  await clock.until(drained)
  const before = sent()
  await clock.advance(10 * LEASE_MS)
  expect(sent()).toBe(before)
})

it('draining waits for results that travel with another request, and sends those that were lost', async () => {
  const { clock, finisher, replies, sent } = setup(async () => ['done'])
  finisher.add(END)
  const lost = finisher.piggyback()
  let isDrained = false
  const drained = finisher.drain().then(() => {
    isDrained = true
  })
  await clock.advance(100)
  expect(isDrained).toBe(false)
  lost?.lost()
  await clock.until(drained)
  expect(replies).toEqual(['done'])
  expect(sent()).toBe(1)
})
