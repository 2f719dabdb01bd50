import { AsyncLocalStorage } from 'node:async_hooks'
import { createSpillway, currentDeadline } from 'spillway'
import { withoutNestedCalls } from 'spillway/internal'
import { createVirtualClock } from 'spillway/testing'
import { afterEach, expect, it, vi } from 'vitest'

afterEach(() => {
  vi.restoreAllMocks()
})

const OPTIONS = {
  retry: { attempts: 2, jitter: 'none', baseMs: 1, budget: 1 },
  timeout: { callMs: 1_000 },
} as const

it('calls of a guard without nested calls never use an async context, not even for retries', async () => {
  const clock = createVirtualClock()
  const guard = createSpillway({ clock }).guard('vendor', OPTIONS)
  withoutNestedCalls(guard)
  const run = vi.spyOn(AsyncLocalStorage.prototype, 'run')
  let attempts = 0
  const answer = guard.run(
    () => {
      if (++attempts === 1) throw Object.assign(new Error('reset'), { code: 'ECONNRESET' })
      return attempts
    },
    { timeoutMs: 500 },
  )
  await clock.advance(100)
  expect(await answer).toBe(2)
  expect(run).not.toHaveBeenCalled()
})

it('calls of other guards pass their deadline on to nested calls', async () => {
  const clock = createVirtualClock()
  const guard = createSpillway({ clock }).guard('vendor', OPTIONS)
  const deadline = await guard.run(() => currentDeadline()?.remainingMs(), { timeoutMs: 500 })
  expect(deadline).toBe(500)
})
