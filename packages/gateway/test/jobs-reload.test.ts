// test-group: sockets

/** Async requests in a gateway whose configuration is reloaded meanwhile. */
import { expect, it } from 'vitest'
import { startGateway } from './gateway-kit.js'
import { submit, untilStatus } from './jobs-kit.js'

const jobQueues = { night: { vendor: 'openai', model: 'gpt', keep: 0, baseMs: 10, maxMs: 20 } }

it('waiting and running jobs are done by the vendor of the new configuration', async () => {
  const gateway = await startGateway({ jobQueues }, { knobs: { tokens: 3, latencyMs: 100 } })
  const before = await Promise.all(Array.from({ length: 8 }, () => submit(gateway)))
  const report = await gateway.rewrite({ jobQueues, guard: { concurrency: { limit: 2 } } })
  expect(report).toMatchObject({ result: 'applied' })
  const after = await Promise.all(Array.from({ length: 8 }, () => submit(gateway)))
  for (const { address } of [...before, ...after]) {
    expect(await untilStatus(gateway.url, address, 'done')).toMatchObject({ attempt: 1 })
  }
  expect(gateway.gateway.spillway.jobQueue('night').snapshot()).toMatchObject({ done: 16, lost: 0 })
  expect(gateway.failures).toEqual([])
})

it('a running job continues over its connection when a reload creates new ones', async () => {
  const gateway = await startGateway({ jobQueues }, { knobs: { tokens: 3, latencyMs: 600 } })
  const { address } = await submit(gateway)
  await untilStatus(gateway.url, address, 'running')
  const report = await gateway.rewrite({ jobQueues, guard: { connectMs: '3s' } })
  expect(report).toMatchObject({ result: 'applied' })
  expect(await untilStatus(gateway.url, address, 'done')).toMatchObject({ attempt: 1 })
})

it('a vendor that a job queue uses cannot be removed by a reload', async () => {
  const gateway = await startGateway({ jobQueues })
  const rest =
    'vendors: { other: { protocol: http, url: "http://other.invalid" } }\nroutes: [{ path: /*, vendor: other }]'
  const report = await gateway.rewrite(rest)
  expect(report).toMatchObject({
    result: 'refused',
    reason: expect.stringContaining('the queue night is for it'),
  })
  expect((await gateway.chat()).status).toBe(200)
})
