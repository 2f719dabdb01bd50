import { readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { refusalHeaders } from './refusal-answer.js'

const PAGE = new URL('../../../../docs/reference/errors.md', import.meta.url)

describe('headers of a refusal', () => {
  it('the docs have the x-should-retry of every code', () => {
    const [, section = ''] = readFileSync(PAGE, 'utf8').split('### When to retry')
    const rows = [...section.matchAll(/^\| `([A-Z_]+)` \|[^|]*\|([^|]*)\|$/gm)]
    expect(rows).toHaveLength(13)
    for (const [, code = '', cell = ''] of rows) {
      const sent = refusalHeaders({ code, retryAfterMs: undefined })['x-should-retry']
      expect([code, cell.trim()]).toEqual([code, sent === undefined ? '' : `\`${sent}\``])
    }
  })

  it.each([
    [0, '1', '1'],
    [-20, '1', '1'],
    [1, '1', '1'],
    [1_000, '1', '1000'],
    [1_000.2, '2', '1001'],
    [60_000, '60', '60000'],
  ])('a wait of %d ms is a Retry-After of %s whole seconds', (retryAfterMs, seconds, ms) => {
    const headers = refusalHeaders({ code: 'SHED', retryAfterMs })
    expect(headers).toEqual({ 'retry-after': seconds, 'retry-after-ms': ms })
  })

  it('a refusal without a known wait has no Retry-After', () => {
    for (const retryAfterMs of [undefined, Number.NaN, Number.POSITIVE_INFINITY]) {
      expect(refusalHeaders({ code: 'CIRCUIT_OPEN', retryAfterMs })).toEqual({})
    }
  })

  it('a refusal with a wait of more than 60 s says that SDKs should not retry', () => {
    const headers = refusalHeaders({ code: 'USER_LIMITED', retryAfterMs: 60_001 })
    expect(headers).toEqual({
      'retry-after': '61',
      'retry-after-ms': '60001',
      'x-should-retry': 'false',
    })
  })

  it('a call whose deadline has passed says that SDKs should not retry', () => {
    const headers = refusalHeaders({ code: 'DEADLINE_EXCEEDED', retryAfterMs: undefined })
    expect(headers).toEqual({ 'x-should-retry': 'false' })
  })
})
