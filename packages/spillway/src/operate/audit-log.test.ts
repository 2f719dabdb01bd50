import { describe, expect, it } from 'vitest'
import { memoryStore } from '../store/memory/memory-store.js'
import { createVirtualClock } from '../testing/virtual-clock.js'
import { MOST_ENTRIES } from './audit-log.js'
import { createOperator } from './operator.js'

const GUARDS = { openai: { limits: [{ unit: 'requests', limit: 10, windowMs: '1m' }] } } as const
const DAY_MS = 86_400_000

function start(auditMs?: number) {
  const clock = createVirtualClock()
  const store = memoryStore({ clock })
  const options = { store, guards: GUARDS, clock, ...(auditMs !== undefined && { auditMs }) }
  return { clock, operator: createOperator(options) }
}

const pause = {
  action: 'pause',
  guard: 'openai',
  forMs: '5m',
  by: 'ann',
  from: '10.0.0.7',
} as const

describe('audit log', () => {
  it('audit log has time, identity, action, arguments and result of each action', async () => {
    const { clock, operator } = start()
    const startMs = clock.wallMs()
    await operator.perform(pause)
    await clock.advance(60_000)
    await operator.perform({ action: 'resume', guard: 'openai', by: 'bob' })
    const [first, second] = await operator.audit()
    const { action, guard, by, from } = pause
    expect(first).toMatchObject({ action, guard, by, from, forMs: 300_000, result: 'done' })
    expect(first?.at).toBe(startMs)
    expect(first?.message).not.toBe('')
    expect(second).toMatchObject({ action: 'resume', by: 'bob', at: startMs + 60_000 })
    expect(await operator.audit({ sinceMs: '30s' })).toEqual([second])
  })

  it('audit log has refused actions, and of them only fields of the right type', async () => {
    const { operator } = start()
    const wrong = { ...pause, guard: 'opnai', lane: 7, token: 'secret' } as never
    await expect(operator.perform(wrong)).rejects.toThrow('token: unknown option')
    const entries = await operator.audit()
    expect(entries).toMatchObject([
      { action: 'pause', guard: 'opnai', by: 'ann', result: 'refused' },
    ])
    expect(entries[0]).not.toHaveProperty('lane')
    expect(JSON.stringify(entries)).not.toContain('secret')
  })

  it('audit log forgets entries after auditMs', async () => {
    const { clock, operator } = start(2 * DAY_MS)
    await operator.perform(pause)
    await clock.advance(1.9 * DAY_MS)
    expect(await operator.audit()).toHaveLength(1)
    await clock.advance(0.2 * DAY_MS)
    expect(await operator.audit()).toEqual([])
  })

  it('audit log keeps the last 1,000 entries with texts of at most 500 characters', async () => {
    const { clock, operator } = start()
    for (let i = 0; i < MOST_ENTRIES + 5; i++) {
      const message = `${i} ${'x'.repeat(900)}`
      await operator.note({ action: 'reload', guard: '', by: 'ann', result: 'done', message })
      await clock.advance(1)
    }
    const entries = await operator.audit()
    expect(entries).toHaveLength(MOST_ENTRIES)
    expect(entries[0]?.message).toMatch(/^5 x+$/)
    expect(entries[0]?.message).toHaveLength(500)
  })
})
