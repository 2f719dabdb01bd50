// A server in front of the vendor. https://github.com/fastify/fastify-rate-limit#options: `redis` with the
// `connectTimeout` and `maxRetriesPerRequest` of its example, and `skipOnError` for a store that fails.
import rateLimit from '@fastify/rate-limit'
import Fastify from 'fastify'
import Redis from 'ioredis'
import { Refused } from './refused.mjs'

export async function createLimiter({ redis, name, limit, windowMs, work, commandTimeout }) {
  const timeout = commandTimeout === undefined ? {} : { commandTimeout }
  const client = new Redis({ ...redis, connectTimeout: 500, maxRetriesPerRequest: 1, ...timeout })
  client.on('error', () => {})
  const server = Fastify()
  await server.register(rateLimit, {
    redis: client,
    nameSpace: name,
    max: limit,
    timeWindow: windowMs,
    keyGenerator: () => 'vendor',
    skipOnError: true,
  })
  server.get('/', async () => {
    await work()
    return 'ok'
  })
  const url = await server.listen({ port: 0, host: '127.0.0.1' })
  return async () => {
    const answer = await fetch(url)
    await answer.text()
    if (answer.status === 429) throw new Refused(Number(answer.headers.get('retry-after')) * 1_000)
    if (!answer.ok) throw new Error(`status ${answer.status}`)
  }
}
