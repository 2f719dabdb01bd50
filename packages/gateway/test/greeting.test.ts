// test-group: sockets

/** The greeting of `spillway gateway` is accurate. */
import { describe, expect, it, onTestFinished } from 'vitest'
import { greeting } from '../src/cli/gateway/greeting.js'
import { builtInConfig } from '../src/config/built-in-config.js'
import { loadConfig } from '../src/config/load.js'
import { openAccess } from '../src/config/open-access.js'
import { createGateway } from '../src/gateway.js'

const silent = { request() {}, event() {}, failure() {}, close() {} }

describe('greeting', () => {
  it('the greeting states the number of attempts after which the circuit opens', async () => {
    const built = builtInConfig({ env: {} })
    const config = { ...built, port: 0, admin: { ...built.admin, port: 0 } }
    const gateway = await createGateway(config, { log: silent })
    onTestFinished(() => gateway.close({ graceMs: 0, delayMs: 0 }))
    const { port, adminPort } = await gateway.start()
    let attempts = 0
    for (;;) {
      const answer = await fetch(`http://127.0.0.1:${port}/v1/chat/completions`, {
        method: 'POST',
        headers: { 'content-type': 'application/json', 'x-mock': '{"status": 503}' },
        body: JSON.stringify({ model: 'gpt-4o', messages: [{ role: 'user', content: 'Hello' }] }),
      })
      expect(answer.status).toBe(503)
      attempts += Number(answer.headers.get('spillway-attempts'))
      if (answer.headers.get('spillway-decision')?.includes('CIRCUIT_OPEN')) break
    }
    const words = greeting({ config, file: undefined, port, adminPort })
    expect(words).toContain(`After ${attempts} attempts in a row`)
  })

  it('the greeting names a Unix socket and a request to it, and no port', () => {
    const config = { ...builtInConfig({ env: {} }), listen: '/run/gateway.sock' }
    const words = greeting({ config, file: 'spillway.yaml', port: 0, adminPort: 8081 })
    expect(words).toContain('Spillway gateway on unix:/run/gateway.sock, admin on http://')
    expect(words).toContain(
      "curl -s --unix-socket '/run/gateway.sock' http://localhost/health/ready",
    )
    expect(words).not.toContain(':0')
  })

  it('the greeting of a gateway with TLS names https for the data port and http for the admin port', () => {
    const built = builtInConfig({ env: {} })
    const tls = { cert: 'a certificate', key: 'its key' }
    const config = { ...built, host: '0.0.0.0', server: { ...built.server, tls } }
    const words = greeting({ config, file: undefined, port: 8080, adminPort: 8081 })
    expect(words).toContain('Spillway gateway on https://0.0.0.0:8080, admin on http://')
    expect(words).toContain('curl -s https://localhost:8080/v1/chat/completions')
    expect(words).not.toContain('http://localhost:8080')
  })

  it('the greeting names the address that the gateway listens on, which is this machine only without a file', () => {
    const config = builtInConfig({ env: {} })
    const built = greeting({ config, file: undefined, port: 8080, adminPort: 8081 })
    expect(built).toContain('Spillway gateway on http://127.0.0.1:8080, admin on http://127.')
    const open = { ...config, host: '::' }
    const all = greeting({ config: open, file: undefined, port: 8080, adminPort: 8081 })
    expect(all).toContain('Spillway gateway on http://[::]:8080')
    expect(all).toContain('curl -s http://localhost:8080/v1')
  })

  it.each([
    ['0.0.0.0', '', true],
    ['192.168.0.7', '', true],
    ['127.0.0.1', '', false],
    ['localhost', '', false],
    ['0.0.0.0', 'callers: [{ key: env:KEY, user: ann }]', false],
  ])('the greeting of host %s with the line "%s" warns of open access: %s', (host, line, warns) => {
    const text = `host: ${host}\nport: 9000\n${line}\nvendors: { a: { protocol: openai, key: env:KEY } }`
    const config = loadConfig({ file: 'a.yaml', text, env: { KEY: 'k' } })
    const words = greeting({ config, file: 'a.yaml', port: 9000, adminPort: 8081 })
    const warning =
      'warning: open to everyone who can reach port 9000, with your vendor key: set callers, or host: 127.0.0.1'
    expect(words.includes(warning)).toBe(warns)
  })

  it('a gateway whose vendors have no key, or that listens on a Unix socket, is not reported as open', () => {
    const read = (text: string) => loadConfig({ file: 'a.yaml', text, env: { KEY: 'k' } })
    const keyed = 'vendors: { a: { protocol: openai, key: env:KEY } }'
    expect(openAccess(read('vendors: { a: { protocol: openai, url: mock } }'))).toBeUndefined()
    expect(openAccess(read(`listen: unix:/run/a.sock\n${keyed}`))).toBeUndefined()
    expect(
      openAccess(read('vendors: { a: { protocol: openai, headers: { api-key: env:KEY } } }')),
    ).toContain('8080')
  })

  it('the greeting names the Redis server without its login, and whether it has answered', () => {
    const config = builtInConfig({ env: { REDIS_URL: 'redis://u:hush-hush@cache:6379' } })
    const at = { config, file: undefined, port: 8080, adminPort: 8081 }
    const words = greeting({ ...at, isReached: false })
    expect(words).toContain('limits and breakers: Redis at cache:6379 (not reached yet)\n')
    expect(words).not.toContain('hush-hush')
    expect(greeting({ ...at, isReached: true })).toContain('shared through Redis at cache:6379\n')
  })
})
