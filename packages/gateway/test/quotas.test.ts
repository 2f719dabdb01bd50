// test-group: io

/** Each quota preset against a vendor that counts by the same rules, until its limit is used. */
import type { MockVendorOptions } from '@spillway/mock-vendor'
import { describe, expect, it } from 'vitest'
import { startGateway } from './gateway-kit.js'

const LIMIT = 20_000
const TOKENS = [{ unit: 'tokens', limit: LIMIT, windowMs: '1h' }] as const
/** About 100 tokens. */
const PROMPT = 'word '.repeat(80)

/** One gateway and its vendor, with the same quota and the same limit. */
async function start(quota: NonNullable<MockVendorOptions['quota']>) {
  const gateway = await startGateway(
    { guard: { quota, limits: TOKENS.map((limit) => ({ ...limit, learn: false })) } },
    { quota, limits: [...TOKENS], knobs: { tokens: 40 } },
  )
  const messages = [{ role: 'user', content: PROMPT }]
  const send = async () => {
    const answer = await gateway.chat({ messages, max_tokens: 200 })
    await answer.text()
    return answer.status
  }
  const sendMany = (count: number) => Promise.all(Array.from({ length: count }, send))
  const useAll = async () => {
    // The gateway learns the usual length of answers.
    for (let index = 0; index < 3; index++) await send()
    // More requests than the limit allows, before the vendor's headers report what is left.
    await sendMany(200)
    while ((await sendMany(10)).includes(200));
  }
  return { ...gateway, useAll }
}

describe('quota presets', () => {
  it.each(['openai', 'azure', 'anthropic', 'bedrock', 'gemini'] as const)(
    '%s: concurrent requests use nearly all of the limit, and the vendor refuses none',
    async (quota) => {
      const { vendor, useAll } = await start(quota)
      await useAll()
      expect(vendor.counts.throttled).toBe(0)
      const tokens = vendor.mostInAnyWindow('1h', { unit: 'tokens', accepted: true })
      expect(tokens).toBeGreaterThan(LIMIT * 0.95)
    },
  )
})
