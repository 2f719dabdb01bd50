// test-group: sockets

/** Shadow mode as seen by clients and operators of a gateway. */
import { expect, it } from 'vitest'
import { until } from '../../spillway/test/streams/stream-kit.js'
import { startGateway } from './gateway-kit.js'

it('a stage in shadow that would have refused several attempts is named once', async () => {
  const { chat, vendor } = await startGateway(
    {
      guard: {
        limits: [{ limit: 1, windowMs: '1m' }],
        retry: { attempts: 3, budget: 1, baseMs: 1 },
        shadow: ['vendor-limit'],
      },
    },
    { knobs: { status: 503 } },
  )
  const answer = await chat()
  expect(vendor.counts.arrived).toBe(3)
  expect(answer.headers.get('spillway-decision')).toContain(';shadow="vendor-limit"')
})

it('a gateway in shadow mode serves every request and reports refusals in headers, logs and metrics', async () => {
  const { chat, adminUrl, records, rewrite } = await startGateway({
    guard: {
      userLimits: [{ per: 'user', limit: 1, windowMs: '1m' }],
      limits: [{ limit: 2, windowMs: '1m' }],
      shadow: ['user-limit', 'vendor-limit'],
    },
  })
  const decisions: (string | null)[] = []
  for (let i = 0; i < 3; i++) {
    const answer = await chat()
    expect(answer.status).toBe(200)
    decisions.push(answer.headers.get('spillway-decision'))
    await answer.text()
  }
  expect(decisions[0]).not.toContain('shadow')
  expect(decisions[1]).toContain(';shadow="user-limit"')
  expect(decisions[2]).toContain(';shadow="user-limit vendor-limit"')
  await until('they are recorded', () => records.length === 3)
  expect(records[2]?.shadow).toEqual(['user-limit', 'vendor-limit'])
  const metrics = await (await fetch(`${adminUrl}/metrics`)).text()
  expect(metrics).toContain(
    'spillway_would_have_refused_total{vendor="openai",stage="user-limit",code="USER_LIMITED"} 2',
  )

  // In force from the next request on, including what was counted in shadow mode.
  await rewrite({
    guard: {
      userLimits: [{ per: 'user', limit: 1, windowMs: '1m' }],
      limits: [{ limit: 2, windowMs: '1m' }],
    },
  })
  expect((await chat()).status).toBe(429)
  expect((await chat({}, { headers: { 'spillway-user': 'ben' } })).status).toBe(429)
})
