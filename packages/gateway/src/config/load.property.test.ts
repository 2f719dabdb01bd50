import { describe, expect, it } from 'vitest'
import { fc } from '../../../spillway/test/fast-check.js'
import { usualOrLong } from '../../../spillway/test/long-run.js'
import { ConfigError } from './config-error.js'
import { loadConfig } from './load.js'

const RUNS = usualOrLong(100, 300)
const SECRETS = { KEY: 'hush-main-key', SPARE: 'hush-spare-key', CALLER: 'hush-caller-key' }
const GOOD = `port: 8080
admin: { port: 8081 }
pod: pod-1
vendors:
  openai: &base
    protocol: openai
    keys: { main: env:KEY, spare: env:SPARE }
    headers: { x-team: search }
    limits:
      - { unit: tokens, limit: 90000, windowMs: 1m }
    breaker: { failureRate: 0.5 }
    timeout: { callMs: 30s, adaptive: { minMs: 1s } }
  other:
    <<: *base
    url: https://other.example/api
routes:
  - vendor: openai
    models: [a, "b-*"]
    fallbacks: [{ key: spare }, { vendor: other }]
callers:
  - { key: env:CALLER, user: search, tier: pro, priority: high }
body: { keepBytes: 1mb }
`
const PIECES = [
  ...':-[]{}&*!|>"\'#?,\t\n \uFEFF',
  '<<: *base',
  '__proto__: 1',
  '&x',
  '*x',
  'env:',
  '~',
]

const edit = fc.record({
  at: fc.nat(GOOD.length),
  drop: fc.nat(12),
  add: fc.oneof(fc.constantFrom(...PIECES), fc.string({ maxLength: 4 })),
})

describe('configuration with random edits', () => {
  it('a randomly edited file is loaded or rejected with valid positions and no secrets', () => {
    let rejected = 0
    fc.assert(
      fc.property(fc.array(edit, { minLength: 1, maxLength: 4 }), (edits) => {
        let text = GOOD
        for (const { at, drop, add } of edits)
          text = text.slice(0, at) + add + text.slice(at + drop)
        try {
          loadConfig({ file: 'a.yaml', text, env: SECRETS })
        } catch (error) {
          if (!(error instanceof ConfigError)) throw error
          rejected++
          expect(error.mistakes.length).toBeGreaterThan(0)
          expect(error.message).not.toContain('hush')
          const lines = text.split('\n').length
          for (const { line = 1, column = 1 } of error.mistakes) {
            expect(line >= 1 && line <= lines && column >= 1).toBe(true)
          }
        }
      }),
      { numRuns: RUNS, seed: 7 },
    )
    expect(rejected).toBeGreaterThan(RUNS / 3)
  })

  it('the configuration file before the random edits is valid', () => {
    const config = loadConfig({ file: 'a.yaml', text: GOOD, env: SECRETS })
    expect(config.vendors[1]?.keys[0]?.secret).toBe(SECRETS.KEY)
  })
})
