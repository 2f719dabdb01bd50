import type { FleetReport } from 'spillway/operate'
import { expect, it } from 'vitest'
import { statusText } from './status-text.js'

it('status names the sub-window of a limit in words, beside the id that commands need', () => {
  const figures = { lane: 'gpt', used: 3, available: 7, nextFreeMs: 0, pausedMs: 0 }
  const limits = ['requests', 'requests/10s', 'requests:gpt-*/500ms'].map((id) => ({
    ...figures,
    id,
    limit: 10,
    configured: 10,
  }))
  const guards = [{ name: 'openai', breakers: [], limits, keys: [] }]
  const report = { store: 'shared', livePods: 1, pods: [], guards } as unknown as FleetReport
  const text = statusText(report, undefined)
  expect(text).toMatch(/openai +gpt +requests +3 +10 +7 +now/)
  expect(text).toMatch(/gpt +requests\/10s \(requests within 10s\) +3/)
  expect(text).toMatch(/gpt +requests:gpt-\*\/500ms \(requests:gpt-\* within 500ms\) +3/)
})
