// test-group: sockets

/** Estimates that the gateway learns, against the mock vendor with Anthropic's quota and a prompt cache. */
import { describe, expect, it } from 'vitest'
import { until } from '../../spillway/test/streams/stream-kit.js'
import type { StoredRequest } from '../src/jobs/stored-request.js'
import { startGateway } from './gateway-kit.js'
import { ASYNC } from './jobs-kit.js'

const AGENTS = 16
const LIMIT = 25_000
const LIMITS = [{ unit: 'inputTokens', limit: LIMIT, windowMs: '1h' }] as const

const cache_control = { type: 'ephemeral' }
const sentence = (name: string, count: number) => `${name} reads the next file. `.repeat(count)

/** Turn `turn` of an agent. Its last message is marked for the cache, and nine tenths of it are known. */
function turnOf(agent: number, turn: number) {
  const messages = Array.from({ length: 2 * turn - 1 }, (_, index) => {
    const text = sentence(`agent ${agent} ${index}`, 25)
    const isLast = index === 2 * turn - 2
    const content = [{ type: 'text', text, ...(isLast && { cache_control }) }]
    return { role: index % 2 === 0 ? 'user' : 'assistant', content }
  })
  const system = [{ type: 'text', text: sentence('system', 500), cache_control }]
  return { system, messages }
}

/** As the mock vendor counts them. */
function countTokens({ system, messages }: ReturnType<typeof turnOf>): number {
  const blocks = [...system, ...messages.flatMap(({ content }) => content)]
  return blocks.reduce((sum, { text }) => sum + text.length, 0) / 4
}

async function startAgents(estimate: 'learned' | 'fixed', jobQueues?: object) {
  const limits = LIMITS.map((limit) => ({ ...limit, learn: false }))
  const gateway = await startGateway(
    { guard: { limits, estimate }, ...(jobQueues && { jobQueues }) },
    { quota: 'anthropic', limits: [...LIMITS], promptCache: true, knobs: { tokens: 20 } },
  )
  const send = async (agent: number, turn: number) => {
    const answer = await gateway.messages(turnOf(agent, turn))
    await answer.text()
    return answer.status
  }
  return { ...gateway, send }
}

describe('estimates of cached conversations', () => {
  it('learned estimates admit 16 cached requests at once where fixed ones admit at most 4, and the vendor refuses none', async () => {
    const atOnce = async (estimate: 'learned' | 'fixed') => {
      const { vendor, send, gateway } = await startAgents(estimate)
      for (let agent = 0; agent < AGENTS; agent++) {
        for (const turn of [1, 2]) expect(await send(agent, turn)).toBe(200)
      }
      const before = vendor.counts.arrived
      vendor.set({ neverAnswer: true })
      let refused = 0
      for (let agent = 0; agent < AGENTS; agent++) {
        // Those that are admitted are cut off when the gateway is closed.
        send(agent, 3).then(
          (status) => (refused += status === 429 ? 1 : 0),
          () => {},
        )
      }
      await until('all are decided', () => vendor.counts.arrived - before + refused === AGENTS)
      expect(vendor.counts.throttled).toBe(0)
      const arrived = vendor.counts.arrived - before
      await gateway.close({ graceMs: 0, delayMs: 0 })
      return arrived
    }
    const [fixed, learned] = await Promise.all([atOnce('fixed'), atOnce('learned')])
    expect(fixed).toBeGreaterThan(0)
    expect(fixed).toBeLessThanOrEqual(AGENTS / 4)
    expect(learned).toBe(AGENTS)
  })

  it('from the third turn on, tokens are reserved within 20 % of what counts, as the snapshot shows', async () => {
    const { gateway, send } = await startAgents('learned')
    const estimates = () => {
      const guards = gateway.spillway.snapshot().guards
      return guards.find(({ name }) => name === 'anthropic')?.estimates[0]
    }
    for (const turn of [1, 2]) expect(await send(0, turn)).toBe(200)
    await until('two turns are settled', () => estimates()?.calls === 2)
    const before = estimates()
    for (const turn of [3, 4, 5, 6]) expect(await send(0, turn)).toBe(200)
    await until('six turns are settled', () => estimates()?.calls === 6)
    const after = estimates()
    expect(after?.unit).toBe('inputTokens')
    const reserved = (after?.reserved ?? 0) - (before?.reserved ?? 0)
    const actual = (after?.actual ?? 0) - (before?.actual ?? 0)
    expect(actual).toBeGreaterThan(0)
    expect(Math.abs(reserved / actual - 1)).toBeLessThan(0.2)
  })

  it('an async request reserves its whole prompt, because the cache may have expired when it is sent', async () => {
    const stopped = { vendor: 'anthropic', model: 'claude', concurrency: 0 }
    const { gateway, send, messages } = await startAgents('learned', { night: stopped })
    const totals = () => {
      const guards = gateway.spillway.snapshot().guards
      return guards.find(({ name }) => name === 'anthropic')?.estimates[0]
    }
    for (const turn of [1, 2]) expect(await send(0, turn)).toBe(200)
    await until('two turns are settled', () => totals()?.calls === 2)
    const later = await messages(turnOf(0, 3), { headers: ASYNC })
    expect(later.status).toBe(202)
    const id = later.headers.get('location')?.split('/').at(-1) ?? ''
    const job = await gateway.spillway.jobQueue<StoredRequest>('night').job(id)
    const before = totals()?.reserved ?? 0
    expect(await send(0, 3)).toBe(200)
    await until('the third turn is settled', () => totals()?.calls === 3)
    const direct = (totals()?.reserved ?? 0) - before
    const whole = countTokens(turnOf(0, 3))
    expect(direct).toBeLessThan(0.3 * whole)
    expect(job?.data.cost?.inputTokens).toBeGreaterThan(0.95 * whole)
  })
})
