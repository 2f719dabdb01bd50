/**
 * Sends ten times a slow vendor's capacity for twenty seconds, from three tiers: the highest tier is served,
 * the vendor is busy and not overloaded, and all other calls are refused immediately.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { createMockVendor } from '@spillway/mock-vendor'
import { Agent, request } from 'undici'
import { startGateway } from '../gateway-process.js'
import { atLeast, atMost, type Figure, reported, type Scenario } from '../scenario.js'

const SECONDS = 20
const UNLOADED_MS = 400
const SLOTS = 16
/** Requests per second that the vendor can serve. */
const CAPACITY = SLOTS / (UNLOADED_MS / 1_000)
const QUEUE_MS = 1_000
const OVERLOAD = 10
const TICK_MS = 5

/** `share`: percent of all requests. Premium alone uses half of the vendor's capacity. */
const TIERS = [
  { tier: 'premium', share: 5, priority: 'high' },
  { tier: 'pro', share: 25, priority: 'normal' },
  { tier: 'free', share: 70, priority: 'low' },
] as const

interface Answer {
  readonly tier: string
  readonly status: number
  readonly tookMs: number
}

const CONFIG = {
  callers: TIERS.map(({ tier, priority }) => ({ key: `env:${tier}`, user: tier, tier, priority })),
  log: { level: 'silent' },
}

const GUARD = {
  protocol: 'openai',
  queue: { size: 40, timeoutMs: QUEUE_MS },
  concurrency: { limit: SLOTS },
  breaker: { failureRate: 0.5, openMs: '10s' },
  timeout: { callMs: '10s' },
  retry: { attempts: 3 },
}

export const overload: Scenario = {
  name: 'overload',
  what: 'ten times the capacity of a slow vendor, three tiers',
  seconds: SECONDS + 5,
  async run() {
    const vendor = createMockVendor({ knobs: { latencyMs: UNLOADED_MS, tokens: 1 } })
    const { url } = await vendor.start()
    const env = Object.fromEntries(TIERS.map(({ tier }) => [tier, `key-of-${tier}`]))
    const gateway = await startGateway({ ...CONFIG, vendors: { slow: { ...GUARD, url } } }, env)
    const agent = new Agent()
    try {
      const startMs = performance.now()
      const answers = await load(gateway.url, agent)
      const seconds = (performance.now() - startMs) / 1_000
      return figuresOf(answers, seconds, vendor.mostAtOnce)
    } finally {
      await agent.destroy()
      await gateway.stop()
      await vendor.close()
    }
  },
}

/** Sends at a constant rate that does not depend on the answers. */
async function load(url: string, agent: Agent): Promise<Answer[]> {
  const calls: Promise<Answer>[] = []
  const total = SECONDS * CAPACITY * OVERLOAD
  const startMs = performance.now()
  while (calls.length < total) {
    const due = ((performance.now() - startMs) / 1_000) * CAPACITY * OVERLOAD
    while (calls.length < Math.min(due, total)) calls.push(ask(url, tierOf(calls.length), agent))
    await sleep(TICK_MS)
  }
  return Promise.all(calls)
}

/** Tiers in the shares above, evenly mixed. */
function tierOf(number: number): string {
  let draw = (number * 37) % 100
  for (const { tier, share } of TIERS) {
    draw -= share
    if (draw < 0) return tier
  }
  return 'free'
}

async function ask(url: string, tier: string, dispatcher: Agent): Promise<Answer> {
  const startMs = performance.now()
  const { statusCode: status, body } = await request(`${url}/v1/chat/completions`, {
    method: 'POST',
    headers: { authorization: `Bearer key-of-${tier}`, 'content-type': 'application/json' },
    body: '{"model":"gpt","messages":[]}',
    dispatcher,
  })
  await body.dump()
  return { tier, status, tookMs: performance.now() - startMs }
}

function figuresOf(answers: readonly Answer[], seconds: number, mostAtOnce: number): Figure[] {
  const served = answers.filter(({ status }) => status === 200)
  const refused = answers.filter(({ status }) => status === 503 || status === 504)
  const servedOf = (tier: string) => {
    const all = answers.filter((each) => each.tier === tier)
    return all.filter(({ status }) => status === 200).length / all.length
  }
  return [
    atLeast('goodput, of capacity', served.length / (seconds * CAPACITY), 0.9),
    atLeast('premium served', servedOf('premium'), 0.99),
    reported('pro served', servedOf('pro')),
    reported('free served', servedOf('free')),
    atLeast('refused', refused.length, 1),
    atMost('neither served nor refused', answers.length - served.length - refused.length, 0),
    atMost('p99 of the served, ms', percentile(served, 0.99), 2 * UNLOADED_MS + QUEUE_MS),
    atMost('median refusal, ms', percentile(refused, 0.5), 50),
    atMost('at once at the vendor', mostAtOnce, SLOTS),
  ]
}

function percentile(answers: readonly Answer[], part: number): number {
  const sorted = answers.map(({ tookMs }) => tookMs).sort((a, b) => a - b)
  return sorted[Math.floor(sorted.length * part)] ?? 0
}
