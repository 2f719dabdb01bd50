// test-group: sockets

/** Options against slow vendors and overload in the gateway's configuration. */
import { expect, it } from 'vitest'
import { until } from '../../spillway/test/streams/stream-kit.js'
import { expectIdle, startGateway } from './gateway-kit.js'

it('gateway hedges a slow vendor: the second answer is passed on and the first request ends', async () => {
  // Long enough for the vendor to be changed before the hedge starts, on a busy machine, too.
  const guard = { hedge: { delayMs: '2s' } }
  const running = await startGateway({ guard }, { knobs: { neverAnswer: true, tokens: 3 } })
  const { chat, vendor, gateway, failures } = running
  const pending = chat({ stream: true })
  await until('the first has arrived', () => vendor.counts.arrived === 1)
  vendor.set({ neverAnswer: false })
  const answer = await pending
  expect(answer.status).toBe(200)
  const text = await answer.text()
  expect(text.match(/"content"/g)?.length).toBeGreaterThanOrEqual(3)
  expect(text).toContain('[DONE]')
  expect(vendor.counts.arrived).toBe(2)
  await expectIdle(running)
  const [openai] = gateway.spillway.snapshot().guards
  expect(openai?.hedges).toMatchObject({ made: 1, won: 1 })
  expect(failures).toEqual([])
})

it('gateway sheds by tier and finds an adaptive concurrency limit', async () => {
  const guard = {
    shed: { maxInFlight: 10, tiers: { free: 0.2 } },
    concurrency: { adaptive: 'gradient2', max: 20 },
  }
  const callers = [
    { key: 'env:FREE', user: 'ann', tier: 'free' },
    { key: 'env:PAID', user: 'bob', tier: 'paid' },
  ]
  const env = { FREE: 'free-key', PAID: 'paid-key' }
  const running = await startGateway({ guard, callers }, { knobs: { latencyMs: 300 } }, env)
  const as = (key: string) => ({ headers: { authorization: `Bearer ${key}` } })
  const paid = Array.from({ length: 4 }, () => running.chat({}, as('paid-key')))
  await until('all have arrived', () => running.vendor.counts.arrived === 4)
  const refused = await running.chat({}, as('free-key'))
  expect(refused.status).toBe(503)
  expect(await refused.text()).toContain('SHED')
  for (const answer of await Promise.all(paid)) expect(answer.status).toBe(200)
  const [openai] = running.gateway.spillway.snapshot().guards
  expect(openai?.laneLimits).toMatchObject([{ lane: 'gpt', limit: 20 }])
})

it('readiness fails on both ports while the gateway is overloaded, if health.overload is set', async () => {
  const health = { overload: { pressure: { maxInFlight: 1 }, forMs: 0 } }
  const running = await startGateway({ health }, { knobs: { neverAnswer: true } })
  const silent = await startGateway({}, { knobs: { neverAnswer: true } })
  const leaving = new AbortController()
  const { signal } = leaving
  const pending = [running.chat({}, { signal }), silent.chat({}, { signal })]
  const statuses = ({ url, adminUrl }: typeof running) =>
    Promise.all(
      [url, adminUrl].map(async (each) => {
        const answer = await fetch(`${each}/health/ready`)
        return [answer.status, ((await answer.json()) as { status: string }).status]
      }),
    )
  const overloaded = [503, 'overloaded']
  const ready = [200, 'ready']
  await expect.poll(() => statuses(running)).toEqual([overloaded, overloaded])
  await until('the other request has arrived', () => silent.vendor.counts.arrived === 1)
  expect(await statuses(silent)).toEqual([ready, ready])
  leaving.abort()
  await Promise.allSettled(pending)
  await expect.poll(() => statuses(running)).toEqual([ready, ready])
  expect(running.notices.map(({ message }) => message)).toEqual([
    'overloaded, not ready',
    'no longer overloaded',
  ])
})
