import { describe, expect, it } from 'vitest'
import { STARTER_CONFIG } from '../../cli/starter-config.js'
import { ConfigError } from '../config-error.js'
import { loadConfig } from '../load.js'
import { redactComment } from './redact.js'

/** Everything a log would show of the error. */
function shownOf(text: string, env: Record<string, string> = {}): string {
  try {
    loadConfig({ file: 'a.yaml', text, env, readFile: () => 'hush-hush from a file\nhush-hush' })
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error
    return `${error.message}\n${error.stack}\n${JSON.stringify(error.mistakes)}`
  }
  throw new Error('no mistake was found')
}

const SECRET = 'hush-hush'
const LOOKS = 'sk-proj-4fzQ81mmX'

describe('secrets in configuration reports', () => {
  it.each([
    ['where it belongs', `vendors: { a: { protocol: openai, key: ${SECRET} } }`],
    ['with another mistake in its line', `vendors: { a: { key: ${SECRET}, protcol: openai } }`],
    ['among several', `vendors: { a: { protocol: openai, keys: { main: ${SECRET}, b: env:B } } }`],
    ['as the only one of several', `vendors: { a: { protocol: openai, keys: ${SECRET} } }`],
    ['without a name', `vendors: { a: { protocol: openai, keys: { ${SECRET} } } }`],
    ['under an unknown name', `vendors: { a: { protocol: openai, ky: ${SECRET} } }`],
    ['in a list', `vendors: { a: { protocol: openai, keys: [${SECRET}] } }`],
    [
      'over several lines',
      // Reports show the line of a mistake, so there is one on the last line of the secret.
      `vendors: { a: { protocol: openai, key: "${SECRET}\n  ${SECRET}", protcol: a } }`,
    ],
    [
      'in a header',
      `vendors: { a: { protocol: openai, headers: { Authorization: Bearer ${SECRET} } } }`,
    ],
    ['in any header', `vendors: { a: { protocol: x, headers: { x-other: ${SECRET} } } }`],
    ['of a caller', `vendors: { a: { protocol: x } }\ncallers: [{ key: ${SECRET}, user: a }]`],
    ['of a caller, and nothing else', `vendors: { a: { protocol: x } }\ncallers: [${SECRET}]`],
    ['of a caller, without a name', `vendors: { a: {} }\ncallers: [{ ${SECRET}, user: a }]`],
    ['of a caller, as a name', `vendors: { a: { protocol: x } }\ncallers:\n  ${SECRET}: search\n`],
    ['in the URL of the store', `redis: redis://:${SECRET}@cache\nvendors: { a: { protocol: x } }`],
    [
      'in the URL of the store, with options',
      `redis: { url: "redis://u:${SECRET}@cache", prefx: a }`,
    ],
    ['in an invalid URL', `redis: "u:${SECRET}@cache:6379"`],
    [
      'in the URL of a vendor',
      `vendors: { a: { protocol: openai, url: "https://u:${SECRET}@a.b" } }`,
    ],
    [
      'behind the URL of a vendor',
      `vendors: { a: { protocol: openai, url: "https://a.b?k=${SECRET}" } }`,
    ],
    ['under a wrong name', `vendors: { a: { protocol: openai, apiKey: ${SECRET} } }`],
    ['behind env:', `vendors: { a: { protocol: openai, key: env:${SECRET} } }`],
    ['as a number', 'vendors: { a: { protocol: openai, key: 4711471147 } }'],
    ['behind an alias', `vendors: { a: { protocol: openai, key: *${SECRET} } }`],
    ['behind a tag', `vendors: { a: { protocol: openai, key: !${SECRET} a } }`],
    ['behind an anchor', `vendors: { a: { protocol: openai, keys: { main: &${SECRET} } } }`],
    ['behind the tag of one of several', `vendors: { a: { keys: { main: !${SECRET} a } } }`],
    ['where its quote is not closed', `vendors:\n  a:\n    key: "${SECRET}\n`],
    ['where quotes are missing', `vendors:\n  a:\n    key: ${SECRET}: b\n`],
    ['behind a # in a quote that is not closed', `vendors:\n  a:\n    key: "a #${SECRET}\n`],
    ['in a comment, with its name', `prot: 1 # key: ${SECRET}`],
    ['in a comment, after an option', `prot: 1 # redis: { url: a, password: ${SECRET} }`],
    ['in a comment, in the URL of the store', `prot: 1 # was redis://:${SECRET}@cache:6379`],
    ['in a comment, as a header', `prot: 1 # authorization = Bearer ${SECRET}`],
    ['where something else is not YAML', `vendors:\n  a: { key: ${SECRET}, b: @ }\n`],
  ])('no report shows a secret: %s', (_, text) => {
    const shown = shownOf(text)
    expect(shown).not.toContain('4711471147')
    expect(shown).not.toContain(SECRET)
  })

  it.each([
    ['as the key of a route', `routes: [{ vendor: a, key: ${LOOKS} }]`],
    ['as the key of a fallback', `routes: [{ vendor: a, fallbacks: [{ key: ${LOOKS} }] }]`],
    ['as a name', `callers: [{ ${LOOKS}: search }]`],
    ['as a number', `port: ${LOOKS}`],
    ['in a comment', `port: x # was ${LOOKS}`],
    ['in a comment of its own', `prot: 1 # key: ${LOOKS}`],
    ['in a comment of a line that is not YAML', `a: ] # was ${LOOKS}`],
  ])('no report shows what looks like a secret: %s', (_, line) => {
    expect(shownOf(`vendors: { a: { protocol: openai } }\n${line}\n`)).not.toContain(LOOKS)
  })

  it.each([
    'hunter22!',
    '4711471147',
    Buffer.from('this is secret').toString('base64'),
    'aXbYcZdWeV',
    '3f2b8c1e-9d4a-4e7b-8a6c-5d0e1f2a3b4c',
    'x'.repeat(20),
    'ghp_16C7e42F292c6912E7',
  ])('no report shows the random text %s of a comment', (text) => {
    expect(shownOf(`prot: 1 # the old one was ${text}, do not use it`)).not.toContain(text)
    expect(shownOf(`a: [ # the old one was ${text}, do not use it`)).not.toContain(text)
  })

  it('no report shows a secret read from a variable or a file', () => {
    const text = `redis: env:R
vendors: { a: { protocol: openai, keys: { b: env:K, c: file:secret }, headers: { x: env:H } } }
callers: [{ key: env:C, user: a }, { key: env:C, user: b }]
`
    const env = { R: SECRET, K: `${SECRET} K`, H: `${SECRET}\u0001`, C: SECRET }
    const shown = shownOf(text, env)
    expect(shown).not.toContain(SECRET)
    expect(shown.match(/"path"/g)).toHaveLength(5)
  })
})

describe('non-secrets in configuration reports', () => {
  it('a report shows what a comment suggests', () => {
    const line = 'key: env:NOPE # or, to try it without a key: url: mock'
    expect(shownOf(`vendors:\n  a:\n    protocol: openai\n    ${line}`)).toContain(line)
    const other = '# also anthropic, gemini'
    expect(shownOf(`vendors: [ ${other}`)).toContain(other)
  })

  it('a report shows every comment of the file that spillway init writes', () => {
    const comments = STARTER_CONFIG.split('\n').map((line) => line.slice(line.search(/#|$/)))
    for (const comment of comments) expect(redactComment(comment)).toBe(comment)
    expect(redactComment('# From September on: gpt-4o-mini, 90000 tokens per minute')).toContain(
      'September on: gpt-4o-mini, 90000 tokens per minute',
    )
  })

  it.each(['127.0.0.1', '0.0.0.0:8080', 'localhost', 'https://api.example.com/v1'])(
    'a report shows the address %s of an unknown option',
    (address) => {
      const line = `server: { host: "${address}" }`
      expect(shownOf(`vendors: { a: { protocol: openai } }\n${line}`)).toContain(line)
    },
  )

  it('a report of invalid YAML shows words of the schema', () => {
    const line = 'limits: [{ unit: requests, limit: 500, windowMs: 1m }'
    expect(shownOf(`vendors:\n  a:\n    protocol: openai\n   ${line}`)).toContain(line)
  })

  it('a report shows values that are no secrets', () => {
    const text = `vendors: { a: { protocol: openai, key: env:NOPE } }
routes:
  - { vendor: a, models: [claude-sonnet-4-5-20250929], timeoutMs: claude-sonnet-4-5 }
`
    const shown = shownOf(text)
    expect(shown).toContain('key: env:NOPE')
    expect(shown).toContain('models: [claude-sonnet-4-5-20250929], timeoutMs: claude-sonnet-4-5')
  })

  it('a report shows empty and unknown options', () => {
    const shown = shownOf('vendors: { a: { protocol: openai, concurrency: , callTimeoutMs: 30s } }')
    expect(shown).toContain('vendors.a.concurrency: must be an object, got null')
    expect(shown).toContain('protocol: openai, concurrency: , callTimeoutMs: 30s }')
  })

  it('a report of invalid YAML shows names, signs and references', () => {
    const shown = shownOf('vendors:\n  openai: { protocol: openai, key: env:OPENAI_API_KEY\n')
    expect(shown).toContain('is not YAML')
    const line = shownOf('vendors:\n  a: { connectMs: 5s, key: env:OPENAI_API_KEY, b: @ }\n')
    expect(line).toContain('a: { connectMs: 5s, key: env:OPENAI_API_KEY, b: @ }')
  })

  it('the mark in a report stays below its column behind a hidden secret', () => {
    const text = `vendors: { a: { protocol: openai, key: ${SECRET}, queu: 5 } }`
    expect(shownOf(text)).toContain(
      '    1 | vendors: { a: { protocol: openai, key: ***, queu: 5 } }\n      |                                             ^',
    )
  })
})

it('an unknown option shows an address, and hides a URL whose path is a secret', () => {
  const shown = (url: string) => shownOf(`vendors: { a: { protocol: openai } }\nalerts: ${url}`)
  expect(shown('https://api.example.com/v1')).toContain('https://api.example.com/v1')
  expect(shown('https://hooks.example.com/services/T024BE7LD/Xk3jd93kKJd8')).not.toContain('Xk3jd')
})
