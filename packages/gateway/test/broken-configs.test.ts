/** Typical mistakes: each is reported with file, line, column and a suggestion. */
import { readdirSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { describe, expect, it } from 'vitest'
import { ConfigError } from '../src/config/config-error.js'
import { loadConfig } from '../src/config/load.js'

const FOLDER = fileURLToPath(new URL('broken-configs/', import.meta.url))
const env = {
  OPENAI_API_KEY: 'present',
  ADMIN_TOKEN: 'too-short',
  SPOKEN_TOKEN: 'open sesame, and stay open',
}

const TABLE: Record<string, readonly string[]> = {
  'wrong-indent': [
    '3:15  is not YAML: the line below is indented further: it has to begin where the names beside it do',
  ],
  'too-far-left': [
    '1:1  vendors: must be an object with at least one vendor, got nothing',
    '2:1  openai: unknown option; known: … is it a vendor? Then it has to be indented, under vendors',
  ],
  tabs: ['2:1  is not YAML: tabs cannot indent: use spaces'],
  'options-too-far-left': [
    '2:3  vendors.openai: must be an object, got null; its options have to be indented further',
  ],
  'option-of-another-level': [
    '4:11  server.host: unknown option; host belongs to the top level',
    '5:12  tracing.failureRate: unknown option; failureRate belongs to vendors.NAME.breaker',
  ],
  'one-space-too-few': [
    '4:1  is not YAML: names beside each other have to begin in the same column',
  ],
  'missing-colon-and-comment': ['4:1  is not YAML: the line above has no colon: write name: value'],
  'missing-colon': ['3:5  is not YAML: the line has no colon: write name: value'],
  'unknown-option': [
    "4:5  vendors.openai.brekaer: unknown option; did you mean 'breaker'?",
    `6:47  vendors.openai.limits[0].window: must be 'day', got "1m"; for a duration, use windowMs`,
  ],
  'misspelt-unit': [
    `4:29  vendors.openai.timeout.firstByteMs: must be a duration of at least 1 ms, such as 250 or '5s', got "5 seconds"; did you mean 5s?`,
    `5:35  vendors.openai.queue.timeoutMs: must be a duration of at least 0 ms, such as 250 or '5s', got "2min"; did you mean 2m?`,
  ],
  'misspelt-limit-unit': [
    `5:17  vendors.openai.limits[0].unit: must be one of 'requests', 'tokens', 'inputTokens', 'outputTokens', got "tokns"; did you mean 'tokens'?`,
    `6:17  vendors.openai.limits[1].unit: must be one of 'requests', 'tokens', 'inputTokens', 'outputTokens', got "dollars"`,
    "11:17  vendors.weather.limits[0].unit: must be 'requests': what else a request to an http vendor costs is not known",
  ],
  'duration-without-unit': [
    `4:35  vendors.openai.queue.timeoutMs: must be a duration of at least 0 ms, such as 250 or '5s', got "30"; did you mean 30s, or 30ms?`,
  ],
  'written-twice': [
    '6:5  vendors.openai.concurrency: is written twice, first in line 4: keep one of them',
  ],
  'missing-variable': [
    '4:10  vendors.openai.key: the environment variable OPENAI_APIKEY is not set; did you mean OPENAI_API_KEY?',
  ],
  'port-as-text': [
    '1:7  port: must be an integer from 0 to 65535, got "8080"; write it without the quotes',
  ],
  'unknown-vendor': [
    "5:13  routes[0].vendor: there is no vendor of this name; did you mean 'openai'?",
  ],
  'key-in-url': [
    '4:10  vendors.openai.url: must end with its path, without ? and #: a key belongs in key, or in headers',
  ],
  'password-in-redis-url': [
    '1:8  redis: must not contain a password: put the URL into a variable and write env:NAME',
  ],
  'key-in-plain-sight': [
    '4:10  vendors.openai.key: must be env:NAME or file:PATH: a secret must not be written here',
  ],
  'negative-limit': [
    '5:34  vendors.openai.limits[0].limit: must be a positive integer, got -500',
    '6:27  vendors.openai.concurrency.limit: must be a positive integer, got 0',
  ],
  empty: [
    '1:1  vendors: must be an object with at least one vendor, got nothing; spillway init writes a file to begin with',
  ],
  'only-comments': [
    '1:1  vendors: must be an object with at least one vendor, got nothing; spillway init writes a file to begin with',
  ],
  'json-with-comments': ['5:3  is not YAML: comments begin with #, not with //'],
  toml: ["2:1  is not YAML but TOML: write 'name: value', and names inside of others indented"],
  'old-booleans': [
    '4:42  vendors.openai.breaker.shadow: must be true or false, got "on"; did you mean true?',
    '5:18  reload.watch: must be true or false, got "no"; did you mean false?',
  ],
  'same-vendor-twice': ['3:3  vendors.openai: is written twice, first in line 2: keep one of them'],
  'fallback-to-itself': [
    '6:9  routes[0].fallbacks[0]: is where the route went before: needs another vendor, key or model',
  ],
  'unknown-protocol': [
    `2:23  vendors.openai.protocol: must be one of 'openai', 'anthropic', 'gemini', 'azure', 'http', got "open-ai"; did you mean 'openai'?`,
  ],
  'byte-order-mark-and-crlf': ['1:7  port: must be an integer from 0 to 65535, got 80800'],
  'alias-bomb': [
    '1:29  vendors[0][6][8][8][7]: is one value too many, of 20000: aliases repeat what they stand for',
  ],
  'vendors-as-list': [
    '2:3  vendors: must be an object with at least one vendor, got an array; write each under its name, without a dash: openai: { protocol: … }',
  ],
  'unclosed-quote': ['3:15  is not YAML: a quote that is never closed'],
  'colon-without-space': [
    '3:5  vendors.openai: must be an object, got "protocol:openai"; after a colon there has to be a space',
  ],
  'same-port-twice': ['1:7  port: must not be admin.port, which is 8081'],
  'redis-two-ways': ['2:8  redis.url: must not come together with sentinels; remove one of them'],
  'short-token': [
    '1:32  admin.token: refers to something too short: a token has at least 16 characters',
  ],
  'token-with-blanks': [
    '1:32  admin.token: refers to something with characters that no key has, such as spaces or line breaks',
  ],
}

/** The complete report. */
function reportOf(name: string): string {
  const text = readFileSync(`${FOLDER}${name}.yaml`, 'utf8')
  try {
    loadConfig({ file: `${name}.yaml`, text, env })
  } catch (error) {
    if (error instanceof ConfigError) return error.message
    throw error
  }
  throw new Error('no mistake was found')
}

describe('typical configuration mistakes', () => {
  it.each(Object.entries(TABLE))(
    'mistake %s is reported with its line and what to write',
    (name, expected) => {
      const report = reportOf(name)
      const heads = report
        .split('\n')
        .filter((line) => line.startsWith(`${name}.yaml`))
        .map((line) =>
          line.slice(`${name}.yaml:`.length).replace(/known: .*; is it/, 'known: … is it'),
        )
      expect(heads).toEqual(expected)
    },
  )

  it('the report of a mistake does not show the secret in it', () => {
    for (const name of ['key-in-url', 'key-in-plain-sight', 'password-in-redis-url']) {
      expect(reportOf(name)).not.toMatch(/4f9a8b7c|hunter22/)
    }
  })

  it('every broken configuration file has a test case', () => {
    const files = readdirSync(FOLDER).map((file) => file.replace('.yaml', ''))
    expect(files.toSorted()).toEqual(Object.keys(TABLE).toSorted())
  })
})
