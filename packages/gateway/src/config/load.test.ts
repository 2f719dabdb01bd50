import { createHash } from 'node:crypto'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createSpillway } from 'spillway'
import { describe, expect, it } from 'vitest'
import { builtInConfig } from './built-in-config.js'
import { ConfigError } from './config-error.js'
import { DEFAULT_PATHS } from './default-paths.js'
import { type LoadOptions, loadConfig } from './load.js'
import { SERVER_LIMITS } from './shapes/server-limits-shape.js'

const sha256 = (text: string) => createHash('sha256').update(text).digest('hex')
const env = {
  OPENAI_API_KEY: 'sk-openai-main',
  SPARE_KEY: 'sk-openai-spare',
  SEARCH_KEY: 'caller-search',
  BATCH_KEY: 'caller-batch',
  EMPTY: ' ',
  HOSTNAME: 'pod-7',
}
const files: Record<string, string> = {
  '/run/secrets/b': 'sk-from-file\n',
  '/run/secrets/empty': '\n',
}

function readFile(path: string): string {
  const content = files[path]
  if (content === undefined) throw Object.assign(new Error('no'), { code: 'ENOENT' })
  return content
}

function load(text: string, options: Partial<LoadOptions> = {}) {
  return loadConfig({ file: 'spillway.yaml', text, env, readFile, ...options })
}

function errorOf(text: string, options: Partial<LoadOptions> = {}): ConfigError {
  try {
    load(text, options)
  } catch (error) {
    expect(error).toBeInstanceOf(ConfigError)
    return error as ConfigError
  }
  throw new Error('no mistake was found')
}

/** `path: message` of every mistake. */
function mistakesIn(text: string, options: Partial<LoadOptions> = {}): string[] {
  return errorOf(text, options).mistakes.map(({ path, message }) => `${path}: ${message}`)
}

/** The position of every mistake. */
function placesIn(text: string): string[] {
  return errorOf(text).mistakes.map(({ path, line, column }) => `${line}:${column} ${path}`)
}

const ONE = 'vendors:\n  openai: { protocol: openai }\n'

describe('loadConfig', () => {
  it('readiness ignores overload by default, and its signals have defaults', () => {
    expect(load(ONE).health).toEqual({ overload: undefined })
    expect(load(`${ONE}health: { overload: {} }\n`).health.overload).toEqual({
      pressure: { loopUtilization: 0.95, loopDelayMs: 200 },
      at: 1,
      forMs: 10_000,
    })
    const written = 'health: { overload: { pressure: { maxInFlight: 500 }, at: 0.8, forMs: 30s } }'
    expect(load(`${ONE}${written}\n`).health.overload).toEqual({
      pressure: { maxInFlight: 500 },
      at: 0.8,
      forMs: 30_000,
    })
  })

  it('a configuration needs only one vendor', () => {
    expect(load(ONE)).toEqual({
      server: SERVER_LIMITS,
      host: '0.0.0.0',
      port: 8080,
      admin: {
        host: '127.0.0.1',
        port: 8081,
        readAccess: 'operators',
        hosts: [],
        auditMs: 2_592_000_000,
      },
      redis: undefined,
      pod: undefined,
      vendors: [
        {
          name: 'openai',
          protocol: 'openai',
          url: 'https://api.openai.com',
          keys: [],
          headers: {},
          connectMs: 5_000,
          quota: 'openai',
          estimate: 'learned',
          hops: false,
          guard: { timeout: { firstByteMs: 60_000 } },
        },
      ],
      routes: [
        {
          name: 'openai defaults',
          paths: DEFAULT_PATHS.openai,
          defaultsOf: 'openai',
          models: undefined,
          choices: 1,
          targets: [{ vendor: 'openai', key: undefined, model: undefined }],
          timeoutMs: undefined,
          keepAliveMs: undefined,
          stripPrefix: undefined,
        },
      ],
      callers: undefined,
      body: { keepBytes: 1_048_576, maxBytes: 33_554_432, maxTotalBytes: 536_870_912 },
      health: { overload: undefined },
      drain: { graceMs: 30_000, delayMs: 0 },
      expectedPods: 1,
      workers: 1,
      reload: { watch: true },
      tracing: undefined,
      telemetry: { genAi: false },
      log: { level: 'info' },
    })
  })

  it('a complete configuration is read with every option', () => {
    const config = load(`
port: 0
host: '::'
admin: { port: 9000, host: 0.0.0.0 }
redis: { url: redis://user@cache:6379/1, prefix: team }
pod: env:HOSTNAME
vendors:
  openai:
    protocol: openai
    url: https://eu.api.openai.com/
    keys: { main: env:OPENAI_API_KEY, spare: file:/run/secrets/b }
    headers: { OpenAI-Organization: env:SPARE_KEY, x-team: search }
    connectMs: 3s
    limits:
      - { unit: requests, limit: 500, windowMs: 1m }
    queue: { size: 10 }
  azure: { protocol: openai, url: 'http://azure.example/openai', key: env:SPARE_KEY }
routes:
  - path: /v1/chat/completions
    models: [gpt-4o, "gpt-4o-*"]
    vendor: openai
    key: spare
    model: gpt-4o-2024-11-20
    fallbacks:
      - key: main
      - vendor: azure
      - model: gpt-4o-mini
    timeoutMs: 5m
    keepAliveMs: 10s
  - name: the rest
    vendor: azure
callers:
  - { key: env:SEARCH_KEY, user: search, tier: pro, priority: high }
  - { key: env:BATCH_KEY, user: batch }
body: { keepBytes: 64kb, maxBytes: 2MB }
drain: { graceMs: 1m, delayMs: 5s }
log: { level: warn }
`)
    expect(config).toMatchObject({
      host: '::',
      port: 0,
      admin: { host: '0.0.0.0', port: 9000, readAccess: 'operators' },
      redis: { url: 'redis://user@cache:6379/1', prefix: 'team' },
      pod: 'pod-7',
      body: { keepBytes: 65_536, maxBytes: 2_097_152, maxTotalBytes: 536_870_912 },
      drain: { graceMs: 60_000, delayMs: 5_000 },
      log: { level: 'warn' },
    })
    expect(config.callers).toEqual([
      { keyHash: sha256('caller-search'), user: 'search', tier: 'pro', priority: 'high' },
      { keyHash: sha256('caller-batch'), user: 'batch', tier: undefined, priority: 'normal' },
    ])
    const [openai, azure] = config.vendors
    expect(openai).toEqual({
      name: 'openai',
      protocol: 'openai',
      url: 'https://eu.api.openai.com',
      keys: [
        { name: 'main', secret: 'sk-openai-main' },
        { name: 'spare', secret: 'sk-from-file' },
      ],
      headers: { 'openai-organization': 'sk-openai-spare', 'x-team': 'search' },
      connectMs: 3_000,
      quota: 'openai',
      estimate: 'learned',
      hops: false,
      guard: {
        limits: [{ unit: 'requests', limit: 500, windowMs: '1m', learn: true }],
        queue: { size: 10 },
        timeout: { firstByteMs: 60_000 },
      },
    })
    expect(azure).toMatchObject({
      url: 'http://azure.example/openai',
      keys: [{ name: 'default', secret: 'sk-openai-spare' }],
    })
    expect(config.routes).toEqual([
      {
        name: '/v1/chat/completions gpt-4o,gpt-4o-*',
        paths: [{ path: '/v1/chat/completions', methods: undefined }],
        defaultsOf: undefined,
        models: ['gpt-4o', 'gpt-4o-*'],
        choices: 1,
        targets: [
          { vendor: 'openai', key: 'spare', model: 'gpt-4o-2024-11-20' },
          { vendor: 'openai', key: 'main', model: 'gpt-4o-2024-11-20' },
          { vendor: 'azure', key: undefined, model: 'gpt-4o-2024-11-20' },
          { vendor: 'openai', key: 'spare', model: 'gpt-4o-mini' },
        ],
        timeoutMs: 300_000,
        keepAliveMs: 10_000,
        stripPrefix: undefined,
      },
      expect.objectContaining({ name: 'the rest', defaultsOf: 'openai' }),
    ])
  })

  it('configuration is read from disk, with secret files relative to it', () => {
    const folder = mkdtempSync(join(tmpdir(), 'config-'))
    try {
      writeFileSync(join(folder, 'key.txt'), 'sk-on-disk\n')
      writeFileSync(
        join(folder, 'a.yaml'),
        'vendors: { a: { protocol: openai, key: file:key.txt } }',
      )
      const config = loadConfig({ file: join(folder, 'a.yaml') })
      expect(config.vendors[0]?.keys).toEqual([{ name: 'default', secret: 'sk-on-disk' }])
    } finally {
      rmSync(folder, { recursive: true })
    }
  })

  it('an unreadable configuration file is a ConfigError', () => {
    const read = () => loadConfig({ file: '/nowhere/a.yaml', env, readFile })
    expect(read).toThrow(ConfigError)
    expect(read).toThrow('/nowhere/a.yaml does not exist; spillway init writes one')
  })

  it('a configuration without vendors is rejected', () => {
    const expected = ['vendors: must be an object with at least one vendor, got nothing']
    const begin = [`${expected[0]}; spillway init writes a file to begin with`]
    expect(mistakesIn('')).toEqual(begin)
    expect(mistakesIn('# nothing yet\n')).toEqual(begin)
    expect(mistakesIn('port: 80\n')).toEqual(expected)
    expect(mistakesIn('vendors:\n')).toEqual(expected)
    expect(mistakesIn('vendors: {}\n')).toEqual([expected[0]?.replace('nothing', 'an empty one')])
    expect(mistakesIn('- a\n')).toEqual([': must be an object, got an array'])
  })
})

describe('embedded configuration', () => {
  it('without a file there is a mock vendor per protocol with all default stages', () => {
    const config = builtInConfig({ env: {} })
    expect(config.vendors.map(({ name, protocol, url }) => [name, protocol, url])).toEqual([
      ['openai', 'openai', 'mock'],
      ['anthropic', 'anthropic', 'mock'],
    ])
    expect(config.routes.map(({ name }) => name)).toEqual(['anthropic defaults', 'openai defaults'])
    expect(config.callers).toBeUndefined()
    expect(config.redis).toBeUndefined()
    expect(config.jobQueues).toMatchObject([{ name: 'later', vendor: 'openai', concurrency: 2 }])
    for (const { guard } of config.vendors) {
      expect(guard).toMatchObject({
        concurrency: { limit: 50 },
        queue: { timeoutMs: '5s' },
        limits: [{ unit: 'requests' }, { unit: 'tokens' }],
        retry: { budget: 0.2 },
        timeout: { firstByteMs: '10s', idleMs: '15s' },
        userLimits: [{ per: 'user' }],
      })
      expect(guard.breaker).toBeDefined()
    }
  })

  it('guards of the embedded configuration can be created', async () => {
    const spillway = createSpillway()
    for (const { name, guard } of builtInConfig({ env: {} }).vendors) spillway.guard(name, guard)
    expect(spillway.snapshot().guards).toHaveLength(2)
    await spillway.close()
  })

  it('REDIS_URL makes the embedded configuration use shared state', () => {
    const redis = { url: 'redis://cache:6379', prefix: undefined }
    expect(builtInConfig({ env: { REDIS_URL: redis.url } }).redis).toEqual(redis)
  })
})

describe('configuration mistakes', () => {
  it('all mistakes are reported at once, in file order, with line and mark', () => {
    const text = `port: 80800
vendors:
  openai:
    protocol: openai
    limits:
      - unit: requests
        limit: 500
        windowMs: fast
    queu: { size: 3 }
`
    expect(errorOf(text).message).toBe(
      `spillway.yaml:1:7  port: must be an integer from 0 to 65535, got 80800
    1 | port: 80800
      |       ^
spillway.yaml:8:19  vendors.openai.limits[0].windowMs: must be a duration of at least 1 ms, such as 250 or '5s', got "fast"
    8 |         windowMs: fast
      |                   ^
spillway.yaml:9:5  vendors.openai.queu: unknown option; did you mean 'queue'?
    9 |     queu: { size: 3 }
      |     ^`,
    )
    expect(errorOf(text).code).toBe('INVALID_CONFIG')
  })

  it('a mistake points at the wrong value, the wrong name or the place of a missing one', () => {
    expect(
      placesIn(`vendors:
  openai:
    protocol: smtp
    timeot: 5
    retry: { attempts: 0 }
  azure:
    queue:
      targetMs: 1s
routes:
  - path: /v1/*
callers:
  - user: search
log:
`),
    ).toEqual([
      '3:15 vendors.openai.protocol',
      '4:5 vendors.openai.timeot',
      '5:24 vendors.openai.retry.attempts',
      '6:3 vendors.azure.protocol',
      '7:5 vendors.azure.queue.size',
      '10:5 routes[0].vendor',
      '12:5 callers[0].key',
      '13:1 log',
    ])
  })

  it('mistakes inside guard options are found, including conflicts between options', () => {
    expect(
      mistakesIn(`vendors:
  a:
    protocol: nope
    limits:
      - { limit: 1, windowMs: 1m, burst: 3 }
      - { limit: 0, windowMs: 1m }
    breaker: { slowRate: 0.5 }
    timeout: { firstByteMs: 1s, adaptive: {} }
  b:
    protocol: openai
    limits: []
    breaker: { openMs: 10s, maxOpenMs: 5s }
`).map((each) => each.replace(/: .*/s, '')),
    ).toEqual([
      'vendors.a.protocol',
      'vendors.a.limits[0].burst',
      'vendors.a.limits[1].limit',
      'vendors.a.breaker.slowRate',
      'vendors.a.timeout.adaptive',
      'vendors.b.limits',
      'vendors.b.breaker.maxOpenMs',
    ])
  })

  it.each([
    ['port: -1', 'port: must be an integer from 0 to 65535, got -1'],
    [
      'port: "80"',
      'port: must be an integer from 0 to 65535, got "80"; write it without the quotes',
    ],
    ['admin: { port: 70000 }', 'admin.port: must be an integer from 0 to 65535, got 70000'],
    ['admin: { prot: 1 }', "admin.prot: unknown option; did you mean 'port'?"],
    ['health: { overlod: {} }', "health.overlod: unknown option; did you mean 'overload'?"],
    [
      'health: { overload: { pressure: { loopDelay: 50 } } }',
      "health.overload.pressure.loopDelay: unknown option; did you mean 'loopDelayMs'?",
    ],
    [
      'health: { overload: { pressure: {} } }',
      'health.overload.pressure: must set at least one of maxInFlight, cpu, memory, loopUtilization, loopDelayMs',
    ],
    [
      'health: { overload: { forMs: soon } }',
      'health.overload.forMs: must be a duration of at least 0 ms, such as 250 or \'5s\', got "soon"',
    ],
    ['admin: { port: 8080 }', "admin.port: must not be the gateway's own port, 8080"],
    ['port: 8081', 'port: must not be admin.port, which is 8081'],
    ['host: ""', 'host: must be a non-empty string, got ""'],
    ['pod: 7', 'pod: must be text: put it in quotes'],
    ['pod: env:NOPE', 'pod: the environment variable NOPE is not set'],
    ['redis: cache:6379', 'redis: must be env:NAME, file:PATH or a redis:// URL'],
    ['redis: http://cache', 'redis: must be env:NAME, file:PATH or a redis:// URL'],
    ['redis: env:HOSTNAME', 'redis: must refer to a URL such as redis://host:6379'],
    ['redis: env:NOPE', 'redis: the environment variable NOPE is not set'],
    [
      'redis: { prefix: a }',
      'redis.url: must be env:NAME, file:PATH or a redis:// URL, got nothing; or urls of a cluster, or sentinels',
    ],
    [
      'body: { keepBytes: 2mb, maxBytes: 1mb }',
      'body.keepBytes: must not be more than maxBytes, 1048576: a larger body is refused',
    ],
    [
      'body: { maxBytes: 2mb, maxTotalBytes: 1mb }',
      'body.maxTotalBytes: must not be less than maxBytes, 2097152: the largest body would always be refused',
    ],
    [
      'body: { maxBytes: 1tb }',
      `body.maxBytes: must be a size of at least 1 bytes, such as 65536 or '64kb', got "1tb"`,
    ],
    [
      'body: { maxBytes: 0.5 }',
      `body.maxBytes: must be a size of at least 1 bytes, such as 65536 or '64kb', got 0.5`,
    ],
    [
      'drain: { graceMs: soon }',
      `drain.graceMs: must be a duration of at least 0 ms, such as 250 or '5s', got "soon"`,
    ],
    [
      'log: { level: inf }',
      "log.level: must be one of 'debug', 'info', 'warn', 'error', 'silent', got \"inf\"; did you mean 'info'?",
    ],
    ['callers: []', 'callers: must be an array of callers; leave it out to serve every client'],
    [
      'callers: [{ key: env:SEARCH_KEY }]',
      'callers[0].user: must be a non-empty string, got nothing',
    ],
    [
      `callers: [{ key: env:SEARCH_KEY, user: ${'u'.repeat(201)} }]`,
      'callers[0].user: must have at most 200 characters',
    ],
    ['callers: [[a]]', 'callers[0]: must be an object with key and user'],
    [
      'callers: [{ key: env:SEARCH_KEY, user: a, priority: hihg }]',
      "callers[0].priority: must be one of 'critical', 'high', 'normal', 'low', got \"hihg\"; did you mean 'high'?",
    ],
    [
      'callers: [{ key: env:SEARCH_KEY, user: a }, { key: env:SEARCH_KEY, user: b }]',
      'callers[1].key: duplicates callers[0].key',
    ],
    ['routes: []', 'routes: must have at least one route; leave it out for one to each vendor'],
    ['routes: 5', 'routes: must be an array, got 5'],
    [
      'routes: { vendor: openai }',
      'routes: must be an array, got an object; write it in [ ], or after a dash',
    ],
  ])('the line %s is rejected', (line, expected) => {
    expect(mistakesIn(`${ONE}${line}\n`)).toEqual([expected])
  })

  it('a smaller maxBytes lowers keepBytes unless that is set', () => {
    expect(load(`${ONE}body: { maxBytes: 64kb }`).body).toMatchObject({
      keepBytes: 65_536,
      maxBytes: 65_536,
    })
  })

  it('two listeners may share a port at different addresses or use any free port', () => {
    expect(load(`${ONE}host: 10.0.0.1\nport: 8081`).port).toBe(8081)
    expect(load(`${ONE}port: 0\nadmin: { port: 0 }`).admin.port).toBe(0)
  })
})

describe('configuration references', () => {
  const key = (reference: string) =>
    mistakesIn(`vendors: { a: { protocol: openai, key: ${reference} } }`)

  const TRY = 'set it, or write url: mock in place of key to try without one'

  it.each([
    ['env:NOPE', `the environment variable NOPE is not set; ${TRY}`],
    ['env:EMPTY', 'the environment variable EMPTY is empty'],
    ['env:toString', `the environment variable toString is not set; ${TRY}`],
    ['"env:"', 'must have the name of a variable after env:'],
    ['env:sk-123', 'must have the name of a variable after env:'],
    ['file:/run/secrets/none', 'the file /run/secrets/none cannot be read (ENOENT)'],
    ['file:/run/secrets/empty', 'the file /run/secrets/empty is empty'],
    ['"file:"', 'must have the path of a file after file:'],
    ['{ env: A }', 'must be env:NAME or file:PATH, got an object'],
    ['12345', 'must be env:NAME or file:PATH: a secret must not be written here'],
    ['', 'must be env:NAME or file:PATH, got nothing'],
  ])('the reference %s is rejected', (reference, expected) => {
    expect(key(reference)).toEqual([`vendors.a.key: ${expected}`])
  })

  it('a reference to a value that cannot be a key is rejected', () => {
    const options = { env: { K: 'two\nlines' } }
    const text = 'vendors: { a: { protocol: openai, key: env:K } }'
    expect(mistakesIn(text, options)).toEqual([
      'vendors.a.key: refers to something with characters that no key has, such as spaces or line breaks',
    ])
  })

  it('env: is resolved only where references are allowed', () => {
    expect(mistakesIn(`${ONE}host: env:HOSTNAME\nport: env:PORT`)).toHaveLength(1)
  })

  it('REDIS_URL is the default for redis, and the file overrides it', () => {
    const options = { env: { REDIS_URL: 'rediss://:pw@cache', OTHER: 'redis://other' } }
    expect(load(ONE, options).redis).toEqual({ url: 'rediss://:pw@cache', prefix: undefined })
    expect(load(`${ONE}redis: env:OTHER`, options).redis?.url).toBe('redis://other')
    expect(load(ONE, { env: { REDIS_URL: '' } }).redis).toBeUndefined()
    expect(errorOf(ONE, { env: { REDIS_URL: 'cache' } }).message).toBe(
      'spillway.yaml  redis: the environment variable REDIS_URL must be a URL such as redis://host:6379',
    )
  })
})
