import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { describe, expect, it } from 'vitest'
import { fc } from '../../../../test/fast-check.js'
import { createRandom } from '../../../core/random.js'
import { readSdkRequest } from '../../fetch/sdk-request.js'
import { anthropicFormat } from '../anthropic-format.js'
import { Reservations } from '../reservation.js'
import type { TokenUsage } from '../usage/token-usage.js'
import { AnswerLengths } from './answer-lengths.js'
import { CachedPrefixes } from './cached-prefixes.js'
import { FIXED_ESTIMATES, LaneEstimates } from './lane-estimates.js'
import { type Prompt, PromptEstimate, tokensOf } from './prompt-estimate.js'

const MINUTE_MS = 60_000

/** A clock that is set by the test. */
function createClock() {
  const clock = { nowMs: 0, now: () => clock.nowMs }
  return clock
}

function createLane({ lane = 'claude', most = 1_000 } = {}) {
  const clock = createClock()
  const prefixes = new CachedPrefixes(clock, most)
  return { clock, prefixes, estimates: new LaneEstimates(lane, prefixes) }
}

/** The prompt of a request to Anthropic, as `guard.sdk()` reads it. */
function promptOf(body: object): Prompt {
  const init = { body: JSON.stringify({ model: 'claude', max_tokens: 500, ...body }) }
  const request = readSdkRequest(anthropicFormat, 'https://a.test/v1/messages', init, false)
  return request.facts?.prompt as Prompt
}

type Block = { type: 'text'; text: string; cache_control?: { type: string; ttl?: string } }
type Message = { role: string; content: string | Block[] }

const marked = (text: string, ttl?: string): Block[] => [
  { type: 'text', text, cache_control: { type: 'ephemeral', ...(ttl && { ttl }) } },
]

/** A text of about this many bytes that differs for each name. */
function textOf(name: string, bytes: number): string {
  const sentence = `${name} looks for the reason of the failing test, and reads the next file. `
  return sentence.repeat(Math.ceil(bytes / sentence.length)).slice(0, bytes)
}

/** An agent whose last message is marked for the cache. The vendor counts 3.2 bytes per token, and all tools. */
class Agent {
  readonly #system: string
  readonly #name: string
  readonly #ttl: string | undefined
  readonly #messages: { role: string; text: string }[] = []

  constructor(
    name: string,
    { system = textOf('system', 8_000), ttl = undefined as string | undefined } = {},
  ) {
    this.#name = name
    this.#system = system
    this.#ttl = ttl
  }

  /** The next request: the answer to the last one, and a new message. */
  next(bytes = 2_000): Prompt {
    const turn = this.#messages.length
    if (turn > 0)
      this.#messages.push({ role: 'assistant', text: textOf(`${this.#name} ${turn}`, 400) })
    this.#messages.push({ role: 'user', text: textOf(`${this.#name} user ${turn}`, bytes) })
    return this.prompt()
  }

  prompt(): Prompt {
    const messages = this.#messages.map(({ role, text }, index): Message => {
      const isLast = index === this.#messages.length - 1
      return { role, content: isLast ? marked(text, this.#ttl) : text }
    })
    return promptOf({ system: marked(this.#system, this.#ttl), messages })
  }
}

/** What the vendor reports, if it had the first `cachedTokens` in its cache and everything is written to it. */
function usageOf(prompt: Prompt, cachedTokens: number): TokenUsage {
  const inputTokens = Math.round(prompt.textBytes / 3.2) + 40
  const cacheWriteTokens = inputTokens - cachedTokens - 4
  return { inputTokens, outputTokens: 100, cachedTokens, cacheWriteTokens }
}

const ONE_ANSWER = { answers: 1, maxTokens: 500 }

describe('the expected share of a prompt in the vendor\u2019s cache', () => {
  it('a growing conversation with 90 % cached input reserves within 20 % of what counts from the third turn on', () => {
    const { estimates, clock } = createLane()
    const reservations = new Reservations([{ unit: 'inputTokens', limit: 1e9 }], 'anthropic')
    const agent = new Agent('ada', { system: textOf('system', 24_000) })
    let cached = 0
    for (let turn = 1; turn <= 12; turn++) {
      const prompt = agent.next()
      const reserved = reservations.costOf({ prompt, ...ONE_ANSWER }, estimates)?.inputTokens ?? 0
      const usage = usageOf(prompt, cached)
      const counted = reservations.countedFor(ONE_ANSWER, usage).inputTokens ?? 0
      if (turn >= 3) {
        expect(cached / (usage.inputTokens ?? 0)).toBeGreaterThan(0.85)
        expect(Math.abs(reserved / counted - 1)).toBeLessThan(0.2)
      }
      estimates.learn(usage, { prompt, answers: 1 }, clock.now())
      cached = (usage.cachedTokens ?? 0) + (usage.cacheWriteTokens ?? 0)
      clock.nowMs += MINUTE_MS
    }
  })

  it('a new conversation with a known system prompt reserves its own messages only', () => {
    const { estimates } = createLane()
    const first = new Agent('ada').next()
    const system = Math.round(8_000 / 3.2)
    estimates.learn(usageOf(first, 0), { prompt: first, answers: 1 }, 0)
    const second = new Agent('grace').next()
    // Only a read shows where the system prompt ends in the cache.
    expect(estimates.prompt(second, true).cachedTokens).toBe(0)
    estimates.learn(usageOf(second, system), { prompt: second, answers: 1 }, 0)
    const third = estimates.prompt(new Agent('alan').next(), true)
    expect(third.cachedTokens).toBe(system)
    expect(third.promptTokens - third.cachedTokens).toBeLessThan(900)
  })

  it('a prefix is expected in the cache for 5 minutes after its last use, with `ttl: 1h` for an hour', () => {
    for (const [ttl, lifetimeMs] of [
      [undefined, 5 * MINUTE_MS],
      ['1h', 60 * MINUTE_MS],
    ] as const) {
      const { estimates, clock } = createLane()
      const agent = new Agent('ada', { ttl })
      const prompt = agent.next()
      const expected = () => estimates.prompt(agent.prompt(), true).cachedTokens
      expect(expected()).toBe(0)
      estimates.prompt(prompt, true)
      estimates.learn(usageOf(prompt, 0), { prompt, answers: 1 }, clock.now())
      clock.nowMs = lifetimeMs - 1
      expect(expected()).toBeGreaterThan(3_000)
      clock.nowMs = lifetimeMs
      expect(expected()).toBe(0)
    }
  })

  it('a prefix that the vendor has dropped is not expected again', () => {
    const { estimates } = createLane()
    const agent = new Agent('ada')
    const learn = (usage: (prompt: Prompt) => TokenUsage) => {
      const prompt = agent.prompt()
      const { cachedTokens } = estimates.prompt(prompt, true)
      estimates.learn(usage(prompt), { prompt, answers: 1 }, 0)
      return cachedTokens
    }
    agent.next()
    learn((prompt) => usageOf(prompt, 0))
    const uncached = (prompt: Prompt) => ({ ...usageOf(prompt, 0), cacheWriteTokens: 0 })
    expect(learn(uncached)).toBeGreaterThan(3_000)
    expect(learn(uncached)).toBe(0)
  })

  it('the same prompt in another lane is not expected in the cache', () => {
    const { estimates, prefixes } = createLane()
    const prompt = new Agent('ada').next()
    estimates.prompt(prompt, true)
    estimates.learn(usageOf(prompt, 0), { prompt, answers: 1 }, 0)
    expect(estimates.prompt(prompt, true).cachedTokens).toBeGreaterThan(3_000)
    expect(new LaneEstimates('other', prefixes).prompt(prompt, true).cachedTokens).toBe(0)
  })

  it('a text that differs in one character of its beginning or end is another prefix', () => {
    const text = textOf('ada', 10_000)
    const hashOf = (content: string) =>
      promptOf({ messages: [{ role: 'user', content }] })
        .prefixes()[0]
        ?.hash.keyFor(0)
    expect(hashOf(text)).toBe(hashOf(text))
    expect(hashOf(`X${text.slice(1)}`)).not.toBe(hashOf(text))
    expect(hashOf(`${text.slice(0, -1)}X`)).not.toBe(hashOf(text))
    expect(hashOf(`${text}.`)).not.toBe(hashOf(text))
  })

  it('the number of remembered prefixes is bounded, and the newest stay', () => {
    const { estimates, prefixes } = createLane({ most: 50 })
    const agents = Array.from({ length: 200 }, (_, index) => new Agent(`agent ${index}`))
    for (const agent of agents) {
      const prompt = agent.next()
      estimates.prompt(prompt, true)
      estimates.learn(usageOf(prompt, 0), { prompt, answers: 1 }, 0)
      expect(prefixes.size).toBeLessThanOrEqual(50)
    }
    const expected = (agent: Agent | undefined) =>
      estimates.prompt((agent as Agent).prompt(), true).cachedTokens
    expect(expected(agents.at(-1))).toBeGreaterThan(0)
    expect(expected(agents[0])).toBe(0)
  })

  it('the text of a prompt can be collected once the prompt is hashed', async () => {
    setFlagsFromString('--expose-gc')
    const collect = runInNewContext('gc') as () => void
    const prompt = new PromptEstimate()
    const hash = () => {
      const text = { secret: textOf('secret', 1_000) }
      prompt.onText(1_000, '', 0, 1_000)
      prompt.onPart('messages')
      prompt.readWith((hash, start, end) => hash.addText(text.secret, start, end))
      const { estimates } = createLane()
      estimates.prompt(prompt, true)
      estimates.learn(usageOf(prompt, 0), { prompt, answers: 1 }, 0)
      return { estimates, text: new WeakRef(text) }
    }
    const { estimates, text } = hash()
    // A WeakRef keeps its target until the end of the turn.
    await Promise.resolve().then(() => new Promise((resolve) => setImmediate(resolve)))
    collect()
    expect(text.deref()).toBeUndefined()
    expect(estimates.prompt(prompt, true).cachedTokens).toBeGreaterThan(0)
  })

  it('a prompt of many short texts is hashed up to 4,096 texts', () => {
    const messages = Array.from({ length: 5_000 }, () => ({ role: 'user', content: 'x' }))
    expect(promptOf({ messages }).prefixes().length).toBe(4_096 / 2)
  })
})

describe('bytes per token', () => {
  /** Texts whose bytes per token vary by 10 % around a mean. */
  const learnLane = (bytesPerToken: number, text: string) => {
    const { estimates } = createLane({ lane: text })
    for (let index = 0; index < 40; index++) {
      const prompt = promptOf({ messages: [{ role: 'user', content: text.repeat(20 + index) }] })
      const ratio = bytesPerToken * (1 + 0.1 * Math.sin(index))
      const inputTokens = Math.round(prompt.textBytes / ratio + prompt.otherTokens)
      estimates.learn({ inputTokens, outputTokens: 10 }, { prompt, answers: 1 }, 0)
    }
    return estimates
  }

  it('a lane of Chinese text and one of code converge to their own bytes per token', () => {
    const chinese = learnLane(
      2.4,
      '\u6211\u4eec\u4eca\u5929\u8ba8\u8bba\u5206\u5e03\u5f0f\u7cfb\u7edf\u7684\u9650\u6d41\u7b56\u7565\u3002',
    )
    const code = learnLane(3.1, 'for (const each of rows) { total += each.value ?? 0 }\n')
    // Below the mean, so that estimates are above it.
    for (const ratio of [chinese.bytesPerToken / 2.4, code.bytesPerToken / 3.1]) {
      expect(ratio).toBeGreaterThan(0.82)
      expect(ratio).toBeLessThan(1)
    }
    const content = '\u6211\u4eec\u4eca\u5929'.repeat(1_000)
    const prompt = promptOf({ messages: [{ role: 'user', content }] })
    const before = FIXED_ESTIMATES.prompt(prompt, false).promptTokens
    const learned = chinese.prompt(prompt, false).promptTokens
    const actual = prompt.textBytes / 2.4 + prompt.otherTokens
    expect(before / actual).toBeLessThan(0.65)
    expect(learned / actual).toBeGreaterThanOrEqual(1)
    expect(learned / actual).toBeLessThan(1.2)
  })

  it('ten prompts together have more tokens than estimated in less than 2 % of the cases', () => {
    const { estimates } = createLane()
    const random = createRandom(1)
    const sums: number[] = []
    let sum = 0
    for (let index = 0; index < 4_000; index++) {
      const content = 'word '.repeat(200 + Math.floor(random() * 2_000))
      const prompt = promptOf({ messages: [{ role: 'user', content }] })
      const inputTokens = Math.round(prompt.textBytes / (3.5 * (0.95 + 0.1 * random())))
      if (index % 10 === 0) {
        sums.push(sum)
        sum = 0
      }
      sum += estimates.prompt(prompt, false).promptTokens - inputTokens
      estimates.learn({ inputTokens }, { prompt, answers: 1 }, 0)
    }
    expect(sums.filter((each) => each < 0).length / sums.length).toBeLessThan(0.02)
  })

  it('bytes per token start at 4, stay between 1 and 12, and ignore prompts of less than 100 tokens', () => {
    const { estimates } = createLane()
    const learn = (bytes: number, inputTokens: number) => {
      const prompt = promptOf({ messages: [{ role: 'user', content: ' '.repeat(bytes) }] })
      estimates.learn({ inputTokens }, { prompt, answers: 1 }, 0)
    }
    expect(estimates.bytesPerToken).toBe(4)
    for (let index = 0; index < 50; index++) learn(10, 90)
    expect(estimates.bytesPerToken).toBe(4)
    for (let index = 0; index < 100; index++) learn(100, 1_000_000)
    expect(estimates.bytesPerToken).toBeGreaterThanOrEqual(1)
    expect(estimates.bytesPerToken).toBeLessThan(1.1)
    for (let index = 0; index < 100; index++) learn(10_000, 120)
    expect(estimates.bytesPerToken).toBeLessThanOrEqual(12)
    expect(estimates.bytesPerToken).toBeGreaterThan(11)
  })
})

describe('the usual length of an answer', () => {
  it('the estimated length of an answer is 1,000 tokens until 20 answers are known, or the longest if that is more', () => {
    const lengths = new AnswerLengths()
    expect(lengths.estimate()).toBe(1_000)
    for (let index = 0; index < 19; index++) lengths.add(50)
    expect(lengths.estimate()).toBe(1_000)
    lengths.add(50)
    expect(lengths.estimate()).toBe(50)
    const long = new AnswerLengths()
    long.add(3_000)
    expect(long.estimate()).toBe(3_000)
  })

  it('the estimated length of an answer is the 95th percentile of the last hundred answers', () => {
    const lengths = new AnswerLengths()
    for (let i = 0; i < 500; i++) lengths.add(100_000)
    for (let tokens = 1; tokens <= 100; tokens++) lengths.add(tokens)
    expect(lengths.estimate()).toBe(95)
  })
})

describe('reservations from learned estimates', () => {
  it('whatever answers report, a reservation is a positive whole number within its limit', () => {
    const limits = ['tokens', 'inputTokens', 'outputTokens'].map((unit) => ({
      unit,
      limit: 50_000,
    }))
    const quota = fc.constantFrom('anthropic', 'bedrock', 'openai', 'azure', 'gemini', 'reported')
    const count = fc.oneof(fc.integer({ min: 0, max: 100_000 }), fc.constant(0))
    const turn = fc.record({
      agent: fc.integer({ min: 0, max: 3 }),
      bytes: fc.integer({ min: 0, max: 20_000 }),
      maxTokens: fc.option(fc.integer({ min: 1, max: 1e6 }), { nil: undefined }),
      usage: fc.record(
        {
          inputTokens: count,
          outputTokens: count,
          cachedTokens: count,
          cacheWriteTokens: count,
          cacheWrite1hTokens: count,
        },
        { requiredKeys: [] },
      ),
      waitMs: fc.integer({ min: 0, max: 400_000 }),
    })
    fc.assert(
      fc.property(quota, fc.array(turn, { maxLength: 30 }), (name, turns) => {
        const { estimates, clock } = createLane({ most: 20 })
        const reservations = new Reservations(limits, name)
        const agents = Array.from({ length: 4 }, (_, index) => new Agent(`agent ${index}`))
        for (const { agent, bytes, maxTokens, usage, waitMs } of turns) {
          const prompt = (agents[agent] as Agent).next(bytes)
          const cost = reservations.costOf({ prompt, maxTokens, answers: 1 }, estimates)
          for (const { unit, limit } of limits) {
            expect(Number.isInteger(cost?.[unit])).toBe(true)
            expect(cost?.[unit]).toBeGreaterThanOrEqual(1)
            expect(cost?.[unit]).toBeLessThanOrEqual(limit)
          }
          estimates.learn(usage as TokenUsage, { prompt, answers: 1 }, clock.now())
          clock.nowMs += waitMs
        }
      }),
      { numRuns: 60 },
    )
  })

  it('Bedrock reserves cached input and Azure reserves max_tokens, whatever was learnt', () => {
    const { estimates } = createLane()
    const agent = new Agent('ada')
    const prompt = agent.next()
    estimates.prompt(prompt, true)
    for (let index = 0; index < 30; index++) {
      estimates.learn(usageOf(prompt, 0), { prompt, answers: 1 }, 0)
    }
    const request = { prompt, maxTokens: 4_000, answers: 1 }
    const reserve = (name: 'anthropic' | 'bedrock' | 'azure') =>
      new Reservations([{ unit: 'tokens', limit: 1e9 }], name).costOf(request, estimates)?.tokens
    const input = tokensOf(prompt, estimates.bytesPerToken)
    expect(reserve('bedrock')).toBe(input + 4_000)
    expect(reserve('azure')).toBe(input + 4_000)
    // The answer, and what was neither read nor written.
    expect(reserve('anthropic')).toBeLessThan(200)
  })
})
