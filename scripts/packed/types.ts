// Compiles where the packages are installed, with declarations: the type of everything that the functions of the root
// entry return has to have a name that a program can import.
import { createDashboard } from '@spillway/dashboard'
import { createGateway, loadConfig } from '@spillway/gateway'
import { createMockVendor } from '@spillway/mock-vendor'
import { SCENARIOS, simulate } from '@spillway/simulator'
import {
  createDeadline,
  createFeatureManager,
  createHealth,
  createOperator,
  createSpillway,
  createTimeBudget,
  customStage,
  llmDefaults,
  staleCache,
  staticValue,
} from 'spillway'
import * as axiosEntry from 'spillway/axios'
import * as degrade from 'spillway/degrade'
import * as expressEntry from 'spillway/express'
import * as fastifyEntry from 'spillway/fastify'
import * as health from 'spillway/health'
import * as honoEntry from 'spillway/hono'
import * as http from 'spillway/http'
import * as internal from 'spillway/internal'
import * as local from 'spillway/local'
import * as metrics from 'spillway/metrics'
import * as nestEntry from 'spillway/nest'
import * as operate from 'spillway/operate'
import * as options from 'spillway/options'
import { redisStore } from 'spillway/redis'
import * as shared from 'spillway/shared'
import * as testing from 'spillway/testing'

export const spillway = createSpillway({ store: redisStore({ url: 'redis://localhost' }) })
export const guard = spillway.guard('openai', { ...llmDefaults({ requestsPerMinute: 500 }) })
export const queue = spillway.jobQueue('mail', { guard: 'openai' })
export const snapshot = guard.snapshot()
export const deadline = createDeadline('1s')
export const budget = createTimeBudget({ totalMs: '1s', steps: { search: 1 } })
export const features = createFeatureManager({ features: {} })
export const healthOfAll = createHealth({ spillway })
export const operator = createOperator({ store: shared.memoryStore(), guards: {} })
export const cache = staleCache({ maxAgeMs: '1m' })
export const fallback = staticValue('none')
export const stage = customStage({ name: 'door', check: () => undefined })
export const answer = guard.run(async ({ signal }) => fetch('https://example.com', { signal }))
export const gateway = createGateway(loadConfig({ file: 'spillway.yaml' }))
export const dashboard = createDashboard({ spillway })
export const vendor = createMockVendor({ knobs: { tokens: 3 } })
export const simulation = simulate(Object.values(SCENARIOS)[0]!)
export const entries = [degrade, expressEntry, fastifyEntry, health, honoEntry, http, internal]
export const clients = [axiosEntry, nestEntry].length
export const others = [local, metrics, operate, options, shared, testing].length
