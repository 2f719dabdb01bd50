/**
 * Two overloaded servers, each in its own process: Fastify with a hook that calls a load shedder, and Fastify with
 * @fastify/under-pressure. Both refuse every request before its body is read.
 */
import underPressure from '@fastify/under-pressure'
import fastify, { type FastifyInstance } from 'fastify'
import { shedRequest } from 'spillway/http'
import { createLoadShedder } from 'spillway/local'
import { isServerProcess, serve, startServerProcess } from '../gateway/server-process.js'
import type { Preparation } from '../measure.js'

/** Both sample the same figures at the same interval. */
const SAMPLE_MS = 100
/** Never reached, but checked for each request. */
const LOOP_DELAY_MS = 60_000

type Kind = 'spillway' | 'under-pressure'

/** Returns the address of the server. */
export async function startRefusing(kind: Kind, preparation: Preparation): Promise<string> {
  const { url } = await startServerProcess(import.meta.url, [kind], preparation)
  return url
}

async function beServer(kind: Kind): Promise<void> {
  const app = fastify()
  if (kind === 'spillway') refuseWithShedder(app)
  else await refuseWithPeer(app)
  app.get('/', async () => ({ hello: 'world' }))
  await app.ready()
  serve(app.server)
}

function refuseWithShedder(app: FastifyInstance): void {
  const shedder = createLoadShedder({
    sampleMs: SAMPLE_MS,
    loopUtilization: 1,
    loopDelayMs: LOOP_DELAY_MS,
    memory: 0.5,
    sensors: { memory: () => 0.99 },
    priorities: true,
  })
  app.addHook('onRequest', (request, reply, done) => {
    if (!shedRequest(shedder, request.raw, reply.raw)) return done()
    reply.hijack()
  })
}

async function refuseWithPeer(app: FastifyInstance): Promise<void> {
  await app.register(underPressure, {
    sampleInterval: SAMPLE_MS,
    maxEventLoopUtilization: 1,
    maxEventLoopDelay: LOOP_DELAY_MS,
    maxRssBytes: 1,
  })
}

if (isServerProcess(import.meta.url)) await beServer(process.argv[2] as Kind)
