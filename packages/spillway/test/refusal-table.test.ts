/** The table "When to retry" of docs/reference/errors.md against refusals that really happen, one for each code. */
import { readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { type ErrorCode, SpillwayError } from '../src/core/errors.js'
import { refusalHeaders } from '../src/core/refusal-answer.js'
import type { GuardOptions } from '../src/guard/options.js'
import type { RunOptions } from '../src/guard/run-options.js'
import { customStage } from '../src/guard/stages/custom.js'
import { createGuardPod, vendorError } from './guard-pod.js'

const PAGE = readFileSync(new URL('../../../docs/reference/errors.md', import.meta.url), 'utf8')

interface Row {
  readonly retryAfter: string
  readonly shouldRetry: string
}

/** The rows of the table, by code. */
function readTable(): Map<string, Row> {
  const [, section = ''] = PAGE.split('### When to retry\n')
  const [table = ''] = section.split('\n\n- ')
  const rows = table.matchAll(/^\| `([A-Z_]+)` \| (.+?) \| (.*?) ?\|$/gm)
  return new Map(
    Array.from(rows, ([, code = '', retryAfter = '', shouldRetry = '']) => [
      code,
      { retryAfter, shouldRetry },
    ]),
  )
}

const never = () => new Promise<never>(() => {})
const failing = () => Promise.reject(vendorError(500))

/** A guard with these options, after `before`, and the refusal of one more call. */
async function refused(
  options: GuardOptions,
  { before = 0, fn = never as () => Promise<unknown>, run = {} as RunOptions, afterMs = 0 } = {},
): Promise<SpillwayError> {
  const pod = createGuardPod(options)
  for (let call = 0; call < before; call++) pod.run(fn, run)
  await pod.clock.advance(afterMs)
  const last = pod.run(never, run)
  await pod.clock.advance(1_000)
  return last.error as SpillwayError
}

/** A store that does not answer, and a rule that refuses calls without it. */
async function withoutStore(): Promise<SpillwayError> {
  const pod = createGuardPod(
    { userLimits: [{ per: 'user', limit: 5, windowMs: '1m', outage: 'refuse' }] },
    { where: 'remote' },
  )
  pod.connection?.goDown()
  const call = pod.quick({ user: 'ann' })
  await pod.clock.advance(10_000)
  return call.error as SpillwayError
}

async function closed(): Promise<SpillwayError> {
  const pod = createGuardPod({})
  await pod.clock.until(pod.guard.close())
  const call = pod.quick()
  await pod.clock.advance(0)
  return call.error as SpillwayError
}

const full = { queue: { size: 1, timeoutMs: 500 }, concurrency: { limit: 1 } } as const

const PROVOKED: Record<ErrorCode, () => Promise<SpillwayError>> = {
  SHED: () => refused({ shed: { maxInFlight: 1 } }, { before: 1 }),
  USER_LIMITED: () =>
    refused(
      { userLimits: [{ per: 'user', limit: 1, windowMs: '1m' }] },
      { before: 1, run: { user: 'ann' } },
    ),
  QUEUE_FULL: () => refused(full, { before: 2 }),
  QUEUE_TIMEOUT: () => refused(full, { before: 1 }),
  CIRCUIT_OPEN: () =>
    refused({ breaker: { consecutiveFailures: 1, openMs: '30s' } }, { before: 1, fn: failing }),
  THROTTLED: () => refused({ throttle: { k: 1, minimumCalls: 1 } }, { before: 50, fn: failing }),
  VENDOR_LIMITED: () =>
    refused({ limits: [{ limit: 1, windowMs: '30s' }] }, { before: 1, afterMs: 100 }),
  STORE_UNAVAILABLE: withoutStore,
  STAGE_REFUSED: () =>
    refused({
      stages: [
        customStage({
          ...{ name: 'closed-on-sundays', after: 'shed', scope: 'local' },
          check: () => ({ refuse: 'it is Sunday', retryAfterMs: 5_000 }),
        }),
      ],
    }),
  SHUTTING_DOWN: closed,
  CALL_TIMEOUT: () => refused({ timeout: { callMs: 100 } }),
  DEADLINE_EXCEEDED: () => refused(full, { before: 1, run: { timeoutMs: 100 } }),
  VENDOR_ERROR: async () =>
    new SpillwayError({
      ...{ code: 'VENDOR_ERROR', stage: 'call', scope: 'local', explain: () => 'it failed' },
    }),
}

describe('table of waits in docs/reference/errors.md', () => {
  const table = readTable()

  it('the table has a row for every code, and for nothing else', () => {
    expect([...table.keys()].sort()).toEqual(Object.keys(PROVOKED).sort())
  })

  for (const [code, provoke] of Object.entries(PROVOKED)) {
    it(`refusal ${code} has the headers retry-after and x-should-retry that the table gives`, async () => {
      const refusal = await provoke()
      expect(refusal).toBeInstanceOf(SpillwayError)
      expect(refusal.code).toBe(code)
      const row = table.get(code)
      const headers = refusalHeaders(refusal)
      expect(headers['retry-after'] !== undefined).toBe(!row?.retryAfter.startsWith('none'))
      expect(headers['x-should-retry'] ?? '').toBe(row?.shouldRetry.replaceAll('`', ''))
      const seconds = /^(\d+)(?: to (\d+))? seconds?\b/.exec(row?.retryAfter ?? '')
      if (seconds === null) return
      const [, shortest, longest = shortest] = seconds
      expect(refusal.retryAfterMs).toBeGreaterThanOrEqual(Number(shortest) * 1_000)
      expect(refusal.retryAfterMs).toBeLessThanOrEqual(Number(longest) * 1_000)
    })
  }
})
