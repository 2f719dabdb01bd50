/**
 * A Fastify server with Spillway's limits or with Fastify's plugin, in its own process. The limits are never reached,
 * but each request is counted and its response has headers with the remaining units.
 */

import rateLimit from '@fastify/rate-limit'
import { fastify } from 'fastify'
import { Redis } from 'ioredis'
import { spillwayFastify } from 'spillway/fastify'
import { redisStore } from 'spillway/redis'
import { isServerProcess, serve, startServerProcess } from '../gateway/server-process.js'
import type { Preparation } from '../measure.js'

export type By = 'spillway' | 'rate-limit'

/** Returns the address of the server. */
export async function startLimitedServer(
  by: By,
  redis: string | undefined,
  preparation: Preparation,
): Promise<string> {
  const args = redis === undefined ? [by] : [by, redis]
  const { url } = await startServerProcess(import.meta.url, args, preparation)
  return url
}

const LIMIT = 1_000_000_000
const WINDOW_MS = 60_000

async function beServer(by: By, redis: string | undefined): Promise<void> {
  const app = fastify()
  if (by === 'spillway') {
    await app.register(spillwayFastify, {
      limits: [
        { per: 'global', limit: LIMIT, windowMs: WINDOW_MS },
        { per: 'ip', limit: LIMIT, windowMs: WINDOW_MS },
      ],
      ...(redis !== undefined && { store: redisStore({ url: redis }) }),
    })
  } else {
    await app.register(rateLimit, {
      max: LIMIT,
      timeWindow: WINDOW_MS,
      ...(redis !== undefined && { redis: new Redis(redis) }),
    })
  }
  app.get('/', () => ({ hello: 'world' }))
  await app.ready()
  serve(app.server)
}

if (isServerProcess(import.meta.url)) await beServer(process.argv[2] as By, process.argv[3])
