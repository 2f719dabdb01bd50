import { SpillwayError } from 'spillway'
import { describe, expect, it } from 'vitest'
import { retryAfterMsOf } from './fallback-reason.js'

const NOW_MS = Date.UTC(2030, 0, 1)
const answer = (retryAfter: string) => ({
  headers: { get: (name: string) => (name === 'retry-after' ? retryAfter : null) },
})

describe('time after which the client of a fallback may retry', () => {
  it('a date in Retry-After of the vendor is compared with the given time', () => {
    expect(retryAfterMsOf(answer('Tue, 01 Jan 2030 00:00:30 GMT'), NOW_MS)).toBe(30_000)
    expect(retryAfterMsOf(answer('7'), NOW_MS)).toBe(7_000)
  })

  it('a refusal of a guard brings its own time', () => {
    const refusal = new SpillwayError({
      ...{ code: 'SHED', status: 503, stage: 'shed', scope: 'local', retryAfterMs: 2_000 },
      explain: () => 'too much',
    } as ConstructorParameters<typeof SpillwayError>[0])
    expect(retryAfterMsOf(refusal, NOW_MS)).toBe(2_000)
  })
})
