// test-group: sockets

import { describe, expect, it } from 'vitest'
import { auditText } from '../src/cli/commands/audit.js'
import { adminClient } from '../src/cli/operate/admin-client.js'
import { startGateway } from './gateway-kit.js'

const TOKEN = 'a-token-of-operators-0123456789'

const LIMITED = { limits: [{ limit: 100, windowMs: '1m' }] }

describe('audit log of a gateway', () => {
  it('gateway keeps actions, refused actions and reloads with name and address, and no token', async () => {
    const { adminUrl } = await startGateway(
      { admin: { port: 0, token: 'env:TOKEN', readAccess: 'public' }, guard: LIMITED },
      {},
      { TOKEN },
    )
    const operator = adminClient(new URL(adminUrl), TOKEN)
    await operator.perform({ action: 'pause', guard: 'openai', forMs: 300_000, by: 'ann' })
    const wrong = { action: 'pause', guard: 'opnai', forMs: 1, by: 'bob' } as const
    await expect(operator.perform(wrong)).rejects.toThrow('opnai')
    const headers = { authorization: `Bearer ${TOKEN}`, 'content-type': 'application/json' }
    const body = JSON.stringify({ by: 'cat' })
    await fetch(`${adminUrl}/config/reload`, { method: 'POST', headers, body })

    const entries = await operator.audit({ sinceMs: 60_000 })
    expect(entries.map(({ action, by, from, result }) => [action, by, from, result])).toEqual([
      ['pause', 'ann', '127.0.0.1', 'done'],
      ['pause', 'bob', '127.0.0.1', 'refused'],
      ['reload', 'cat', '127.0.0.1', 'done'],
    ])
    expect(entries[0]).toMatchObject({ guard: 'openai', forMs: 300_000 })
    expect(JSON.stringify(entries)).not.toContain(TOKEN)
    expect((await fetch(`${adminUrl}/audit`)).status).toBe(401)
    const invalid = await fetch(`${adminUrl}/audit?since=soon`, { headers })
    expect([invalid.status, await invalid.text()]).toEqual([
      400,
      expect.stringContaining('sinceMs'),
    ])
  })

  it('spillway audit prints one line for each action', () => {
    const entry = { id: '1', action: 'limit', guard: 'openai', by: 'ann@host', message: '' }
    const text = auditText([
      { ...entry, at: 0, unit: 'requests', limit: 5, forMs: 60_000, result: 'done' },
      { ...entry, at: 1, from: '10.0.0.7', result: 'refused', message: 'no\x1b[2J' },
    ])
    const [, first, second] = text.split('\n')
    expect(first).toMatch(
      /^1970-01-01T00:00:00.000Z +ann@host +- +limit +openai +unit=requests limit=5 for=1m +done$/,
    )
    expect(second).toContain('10.0.0.7')
    expect(second).toContain('refused: no [2J')
    expect(auditText([])).toBe('No actions of operators are recorded.\n')
  })
})
