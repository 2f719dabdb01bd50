import type { FleetReport } from 'spillway/operate'
import { expect, it } from 'vitest'
import { statusText } from './status-text.js'

it('status describes the sub-window of a limit beside the id that commands need', () => {
  const figures = { lane: 'gpt', used: 3, available: 7, nextFreeMs: 0, pausedMs: 0 }
  const limits = ['requests', 'requests/10s', 'requests:gpt-*/500ms'].map((id) => ({
    ...figures,
    id,
    limit: 10,
    configured: 10,
  }))
  const guards = [{ name: 'openai', breakers: [], limits, keys: [] }]
  const report = { store: 'shared', livePods: 1, pods: [], guards } as unknown as FleetReport
  const text = statusText(report, undefined, 0)
  expect(text).toMatch(/openai +gpt +requests +3 +10 +7 +now/)
  expect(text).toMatch(/gpt +requests\/10s \(requests within 10s\) +3/)
  expect(text).toMatch(/gpt +requests:gpt-\*\/500ms \(requests:gpt-\* within 500ms\) +3/)
})

it('status shows how long a breaker stays open and a key stays quarantined', () => {
  const nowMs = Date.parse('2026-01-01T00:00:00Z')
  const counts = { calls: 20, failures: 15, slow: 0 }
  const breakers = [{ lane: 'gpt', state: 'open', openUntil: '2026-01-01T00:00:07.5Z', ...counts }]
  const until = '2026-01-01T00:02:00Z'
  const keys = [{ key: 'main', state: 'quarantined', reason: 'quota-exhausted', until }]
  const guards = [{ name: 'openai', breakers, limits: [], keys }]
  const report = { store: 'shared', livePods: 1, pods: [], guards } as unknown as FleetReport
  expect(statusText(report, undefined, nowMs)).toMatch(/openai +gpt +open +7\.5s +20 +15 +0/)
  expect(statusText(report, undefined, nowMs)).toMatch(/main +quarantined +quota-exhausted +2m/)
  const laterMs = nowMs + 60_000
  expect(statusText(report, undefined, laterMs)).toMatch(/openai +gpt +open +0\.0s/)
  expect(statusText(report, undefined, laterMs)).toMatch(/quota-exhausted +1m/)
})
