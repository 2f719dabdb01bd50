/**
 * A pod with a dashboard, in its own process: twenty guards with Redis, and DECISIONS_A_SECOND calls, some of them
 * refused. Reports its CPU time on request.
 */
import { createServer } from 'node:http'
import { createDashboard } from '@spillway/dashboard'
import { createSpillway, type Guard } from 'spillway'
import { redisStore } from 'spillway/redis'
import { isServerProcess, serve } from '../gateway/server-process.js'

const GUARDS = 20
const DECISIONS_A_SECOND = 5_000
const BEAT_MS = 10
const LANES = ['gpt-4o', 'gpt-4o-mini']
const USERS = 200

export interface CpuReading {
  /** CPU time since the process started, and wall-clock time, both in milliseconds. */
  cpuMs: number
  atMs: number
  decisions: number
}

if (isServerProcess(import.meta.url)) start(process.argv[2] ?? '')

function start(redis: string): void {
  const spillway = createSpillway({ store: redisStore({ url: redis }), pod: 'watched' })
  const guards = Array.from({ length: GUARDS }, (_, index) => createGuard(spillway, index))
  let decisions = 0
  let dueMs = performance.now()
  setInterval(() => {
    // A late timer catches up, so the rate is the same on a busy machine.
    for (; dueMs <= performance.now(); dueMs += 1_000 / DECISIONS_A_SECOND) {
      decide(guards, decisions++)
    }
  }, BEAT_MS)
  process.on('message', () => {
    const { user, system } = process.cpuUsage()
    const reading: CpuReading = {
      cpuMs: (user + system) / 1_000,
      atMs: performance.now(),
      decisions,
    }
    process.send?.(reading)
  })
  serve(createServer(createDashboard({ spillway })))
}

/** Every stage is configured. User limits are lower than the load, so that some calls are refused. */
function createGuard(spillway: ReturnType<typeof createSpillway>, index: number): Guard {
  return spillway.guard(`vendor-${index}`, {
    shed: { maxQueue: 1_000 },
    userLimits: [{ per: 'user', limit: 60, windowMs: '1m', burst: 60 }],
    queue: { size: 1_000, timeoutMs: '5s' },
    breaker: { failureRate: 0.5, windowMs: '30s', minimumCalls: 10 },
    limits: [{ unit: 'requests', limit: 100_000_000, windowMs: '1m' }],
    concurrency: { limit: 500 },
    timeout: { callMs: '30s' },
    retry: { attempts: 3, budget: 0.2 },
  })
}

function decide(guards: readonly Guard[], number: number): void {
  const guard = guards[number % GUARDS] as Guard
  const options = { user: `user-${number % USERS}`, lane: LANES[number % LANES.length] as string }
  guard.run(async () => 'fine', options).catch(() => {})
}
