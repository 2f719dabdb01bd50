// test-group: io

/** Requests that may wait, in a gateway that takes over another configuration meanwhile. */
import { expect, it } from 'vitest'
import { startGateway } from './gateway-kit.js'
import { submit, untilStatus } from './jobs-kit.js'

const queues = { night: { vendor: 'openai', model: 'gpt', keep: 0, baseMs: 10, maxMs: 20 } }

it('what waits and what runs is done, by the vendor as it is written down now', async () => {
  const gateway = await startGateway({ queues }, { knobs: { tokens: 3, latencyMs: 100 } })
  const before = await Promise.all(Array.from({ length: 8 }, () => submit(gateway)))
  const report = await gateway.rewrite({ queues, guard: { concurrency: { limit: 2 } } })
  expect(report).toMatchObject({ result: 'applied' })
  const after = await Promise.all(Array.from({ length: 8 }, () => submit(gateway)))
  for (const { address } of [...before, ...after]) {
    expect(await untilStatus(gateway.url, address, 'done')).toMatchObject({ attempt: 1 })
  }
  expect(gateway.gateway.spillway.queue('night').snapshot()).toMatchObject({ done: 16, lost: 0 })
  expect(gateway.failures).toEqual([])
})

it('a job that runs goes on over the connection it has, when others are made', async () => {
  const gateway = await startGateway({ queues }, { knobs: { tokens: 3, latencyMs: 600 } })
  const { address } = await submit(gateway)
  await untilStatus(gateway.url, address, 'running')
  const report = await gateway.rewrite({ queues, guard: { connectMs: '3s' } })
  expect(report).toMatchObject({ result: 'applied' })
  expect(await untilStatus(gateway.url, address, 'done')).toMatchObject({ attempt: 1 })
})

it('a vendor that a queue is for stays until a restart', async () => {
  const gateway = await startGateway({ queues })
  const rest =
    'vendors: { other: { protocol: http, url: "http://other.invalid" } }\nroutes: [{ path: /*, vendor: other }]'
  const report = await gateway.rewrite(rest)
  expect(report).toMatchObject({
    result: 'refused',
    reason: expect.stringContaining('the queue night is for it'),
  })
  expect((await gateway.chat()).status).toBe(200)
})
