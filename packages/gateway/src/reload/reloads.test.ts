import { createVirtualClock } from 'spillway/testing'
import { expect, it } from 'vitest'
import { Reloads } from './reloads.js'

const CHANGES = { added: [], changed: ['body'], removed: [], afterRestart: [] }

it('a configuration is in force since the last reload that was applied', async () => {
  const clock = createVirtualClock()
  const reloads = new Reloads(clock)
  const startedMs = clock.wallMs()
  await clock.advance(5_000)
  reloads.refused('it has no vendors')
  expect(reloads.status()).toMatchObject({
    generation: 1,
    since: new Date(startedMs).toISOString(),
    refused: { at: new Date(startedMs + 5_000).toISOString(), reason: 'it has no vendors' },
  })
  await clock.advance(2_000)
  reloads.applied(CHANGES)
  expect(reloads.status()).toMatchObject({
    generation: 2,
    since: new Date(startedMs + 7_000).toISOString(),
    refused: undefined,
  })
  expect(reloads.since).toBe((startedMs + 7_000) / 1_000)
})
