// test-group: sockets

/** The greeting of `spillway gateway` is accurate. */
import { describe, expect, it, onTestFinished } from 'vitest'
import { greeting } from '../src/cli/gateway/greeting.js'
import { builtInConfig } from '../src/config/built-in-config.js'
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
    expect(words).toContain('Spillway gateway on https://localhost:8080, admin on http://')
    expect(words).toContain('curl -s https://localhost:8080/v1/chat/completions')
    expect(words).not.toContain('http://localhost:8080')
  })
})
