// test-group: sockets

import { setTimeout as sleep } from 'node:timers/promises'
import { describe, expect, it } from 'vitest'
import { shown } from '../../src/shown.js'
import { startPod } from './dashboard-kit.js'

const SECRETS = {
  key: 'sk-proj-Zx81PlantedKeyMustNotShow',
  token: 'Bearer planted-bearer-token-0123456789',
  jwt: 'eyJhbGciOiJIUzI1NiJ9.eyJwbGFudGVkIjoiand0In0.c2lnbmF0dXJlLXBsYW50ZWQ',
  url: 'redis://user:planted-password@cache:6379',
  body: 'planted words of a request body',
  answer: 'planted words of an answer',
  cookie: 'planted-session-cookie',
}

describe('data sent to the page', () => {
  it('the page receives no secret, wherever it was put', async () => {
    const pod = await startPod({ token: 'planted-admin-token-0123456789' })
    const guard = pod.spillway.guard('vendor', {
      breaker: { consecutiveFailures: 100 },
      limits: [{ unit: 'requests', limit: 50, windowMs: '1h' }],
      fetch: { fetch: async () => new Response(SECRETS.answer, { status: 500 }) },
      retry: { attempts: 2, baseMs: 1, maxMs: 2 },
    })
    const queue = pod.spillway.jobQueue('jobs', { guard: 'vendor', attempts: 1 })
    await queue.add({ prompt: SECRETS.body }, { key: SECRETS.key })
    const reader = await pod.read()
    const fail = () => Promise.reject(new Error(`${SECRETS.key} ${SECRETS.body} ${SECRETS.cookie}`))
    const options = { user: 'ada', idempotencyKey: SECRETS.key, cacheKey: SECRETS.body }
    await guard.run(fail, options).catch(() => {})
    await guard.run(fail, { lane: `gpt ${SECRETS.key}`, user: SECRETS.token }).catch(() => {})
    await guard.run(fail, { lane: SECRETS.jwt, user: SECRETS.url }).catch(() => {})
    await guard.fetch('http://vendor/v1', {
      method: 'POST',
      headers: { authorization: SECRETS.token, cookie: SECRETS.cookie },
      body: SECRETS.body,
    })
    // The log samples a few calls per 100 ms, and the last one has to be among them.
    await sleep(250)
    await guard.run(() => SECRETS.answer, { user: 'last' })
    await reader.until('decisions', ({ records }) => records.some(({ user }) => user === 'last'))
    await reader.until('jobQueues')
    await reader.until('guards', ({ guards }) => (guards[0]?.flow.calls ?? 0) > 0)
    const answer = await pod.act(
      { act: 'isolate', guard: SECRETS.key, forMs: 5_000 },
      {
        authorization: 'Bearer planted-admin-token-0123456789',
      },
    )
    const everything = reader.text + JSON.stringify(answer) + (await (await fetch(pod.url)).text())
    expect(everything).toContain('ada')
    expect(everything).not.toMatch(/planted/i)
    expect(everything).not.toContain('eyJhbGci')
  })

  it('names arrive as text of bounded length, whatever they contain', async () => {
    const pod = await startPod()
    const names = {
      script: '<script>alert(1)</script>',
      attribute: '" onload="alert(1)',
      lines: 'two\nlines\r\n\r\nevent: act\ndata: {}\n\n',
      turned: '\u202egnp.exe',
      broken: 'half a pair \ud83d',
      long: 'long '.repeat(2_000),
    }
    for (const name of Object.values(names)) pod.spillway.guard(name, { concurrency: { limit: 1 } })
    const reader = await pod.read()
    for (const name of Object.values(names)) {
      await pod.spillway.guard(name).run(() => 1, { user: name, lane: name, tier: name })
    }
    const hello = await reader.until('hello', ({ guards }) => guards.length === 6)
    expect(hello.guards.map(({ name }) => name).slice(0, 4)).toEqual(
      Object.values(names).slice(0, 4),
    )
    await reader.until('guards', ({ guards }) => guards.some(({ flow }) => flow.calls > 0))
    await reader.until('decisions', ({ records }) => records.length > 0)
    // No part of a name has become an event.
    expect(reader.all('act')).toEqual([])
    for (const { text } of reader.messages) {
      const longest = Math.max(
        ...[...text.matchAll(/"((?:[^"\\]|\\.)*)"/g)].map(
          ([, each]) => JSON.parse(`"${each}"`).length,
        ),
      )
      expect(longest).toBeLessThanOrEqual(200)
      expect(text).not.toMatch(/\\ud83d/i)
    }
  })
})

describe('shown()', () => {
  it('shown() keeps text without secrets unchanged', () => {
    for (const text of [
      'gpt-4o',
      'task-force-one-hundred-and-one',
      'claude-3-5-sonnet-20241022',
      'ada@example.com',
      'skiing',
      'eyJ',
    ]) {
      expect(shown(text)).toBe(text)
    }
  })

  it('shown() masks what looks like a key and nothing else', () => {
    expect(shown(`gpt (${SECRETS.key})`)).toBe('gpt (sk-…)')
    expect(shown(SECRETS.url)).toBe('redis://…cache:6379')
  })
})
