/** Keys while the store is unreachable: each pod keeps what the fleet knew, and decides alone. */
import { expect, it } from 'vitest'
import { SpillwayError } from '../src/core/errors.js'
import { createKeyQuarantine } from '../src/guard/fleet/key-quarantine-of.js'
import { createSpillway } from '../src/index.js'
import { keyIdOf } from '../src/shared/key-quarantine/key-id.js'
import type { KeyAnswer } from '../src/shared/key-quarantine/key-quarantine.js'
import { createHarness } from '../src/testing/index.js'

const KEY = keyIdOf('openai', 'main', 'sk-first')
const MINUTE_MS = 60_000
const EXHAUSTED: KeyAnswer = { kind: 'quota-exhausted', resetMs: 10 * MINUTE_MS }

function setup() {
  const fleet = createHarness({
    seed: 1,
    pods: 2,
    create: ({ name, clock, store, random }) => {
      const spillway = createSpillway({ store, clock, random, pod: name })
      const keys = createKeyQuarantine(spillway, spillway.guard('openai', { retry: {} }))
      keys.use([KEY])
      return keys
    },
  })
  const pods = fleet.pods.map(({ value }) => value)
  const all = (act: 'goDown' | 'comeBack') => {
    for (const { store } of fleet.pods) store[act]()
  }
  /** Whether the request was sent. */
  const request = async (pod: number, answer: KeyAnswer) => {
    const permit = await fleet.settle(Promise.resolve(pods[pod]!.enter(KEY)))
    if (permit instanceof SpillwayError) return false
    pods[pod]!.answered(permit, answer)
    await fleet.run(20)
    return true
  }
  const states = () => pods.map((pod) => pod.states()[0]?.state)
  return { fleet, all, request, states }
}

it('a quarantined key stays quarantined during an outage of the store, and is probed after its reset time', async () => {
  const { fleet, all, request, states } = setup()
  await fleet.run(1_000)
  await request(0, EXHAUSTED)
  expect(states()).toEqual(['quarantined', 'quarantined'])
  all('goDown')
  await fleet.run(5 * MINUTE_MS)
  expect(await request(1, EXHAUSTED)).toBe(false)
  await fleet.run(5 * MINUTE_MS)
  expect(await request(1, { kind: 'accepted' })).toBe(true)
  expect(states()[1]).toBe('usable')
})

it('during an outage of the store a pod quarantines a key for itself', async () => {
  const { fleet, all, request, states } = setup()
  await fleet.run(1_000)
  all('goDown')
  await fleet.run(2_000)
  await request(0, EXHAUSTED)
  expect(states()).toEqual(['quarantined', 'usable'])
  for (let times = 0; times < 3; times++) await request(1, { kind: 'invalid-key' })
  expect(states()).toEqual(['quarantined', 'quarantined'])
})
