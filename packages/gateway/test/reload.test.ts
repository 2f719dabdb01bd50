// test-group: sockets

/** A reload affects only options that have changed. */
import { describe, expect, it } from 'vitest'
import { until } from '../../spillway/test/streams/stream-kit.js'
import { expectIdle, startGateway } from './gateway-kit.js'
import { get, startHttpVendor, Talk } from './http1-kit.js'

describe('configuration reload', () => {
  it('a configuration with a mistake is rejected with its reason, and the old one stays', async () => {
    const { rewrite, chat, adminUrl, notices } = await startGateway()
    const metrics = async () => (await fetch(`${adminUrl}/metrics`)).text()
    const deep = async () =>
      (await (await fetch(`${adminUrl}/health/deep`)).json()) as {
        config: { generation: number; refused?: { reason: string } }
      }
    const refused = await rewrite('vendors: { openai: { protocol: openai, queu: { size: 1 } } }')
    expect(refused).toMatchObject({ result: 'refused' })
    expect(JSON.stringify(refused)).toMatch(/test\.yaml:1:\d+ .*did you mean 'queue'/)
    expect(notices).toEqual([
      expect.objectContaining({ level: 'error', message: 'configuration refused' }),
    ])
    expect((await deep()).config.refused?.reason).toContain('queu')
    expect(await metrics()).toContain('spillway_config_reloads_total{result="refused"} 1')
    expect(await metrics()).toContain('spillway_config_refused 1')
    expect((await chat()).status).toBe(200)

    const applied = await rewrite({ guard: { queue: { size: 1 } } })
    expect(applied).toMatchObject({ result: 'applied', generation: 2 })
    expect((await deep()).config).toMatchObject({ generation: 2 })
    expect((await deep()).config.refused).toBeUndefined()
    expect(await metrics()).toContain('spillway_config_refused 0')
    expect(await metrics()).toContain('spillway_config_generation 2')
  })

  it('the rejected configuration is quoted to operators only', async () => {
    const token = 'a-token-of-an-operator'
    const admin = { port: 0, token: 'env:TOKEN' }
    const { rewrite, adminUrl } = await startGateway({ admin }, {}, { TOKEN: token })
    await rewrite('vendors: { openai: { protocol: openai, queu: { size: 1 } } }')
    const refusedFor = async (headers: Record<string, string>) => {
      const answer = await fetch(`${adminUrl}/health/deep`, { headers })
      return ((await answer.json()) as { config: { refused: object } }).config.refused
    }
    expect(await refusedFor({})).toEqual({ at: expect.any(String) })
    const shown = await refusedFor({ authorization: `Bearer ${token}` })
    expect(shown).toMatchObject({ reason: expect.stringContaining('queu') })
  })

  it('a reload lists what has changed by name and without values', async () => {
    const env = { OLD: 'old-secret', NEW: 'new-secret', ANN: 'ann-secret' }
    const { rewrite, notices } = await startGateway(
      {
        vendors: { spare: { protocol: 'openai', url: 'http://spare.invalid', key: 'env:OLD' } },
        routes: [{ vendor: 'openai' }],
      },
      {},
      env,
    )
    const report = await rewrite({
      guard: { limits: [{ limit: 5, windowMs: '1m' }] },
      vendors: {
        third: {
          protocol: 'http',
          url: 'http://third.invalid',
          headers: { 'x-api-key': 'env:NEW' },
        },
      },
      routes: [
        { vendor: 'openai', timeoutMs: '1m' },
        { path: '/third/*', vendor: 'third' },
      ],
      callers: [{ key: 'env:ANN', user: 'ann' }],
      port: 1,
      redis: 'redis://elsewhere.invalid',
    })
    expect(report).toEqual({
      result: 'applied',
      generation: 2,
      added: ['vendors.third', 'routes./third/*'],
      changed: [
        'vendors.openai.limits',
        'vendors.anthropic.limits',
        'routes.openai defaults.timeoutMs',
        'callers',
      ],
      removed: ['vendors.spare'],
      afterRestart: ['port', 'redis'],
    })
    expect(JSON.stringify([report, notices])).not.toContain('secret')
    // It is still listed after the next reload.
    expect(await rewrite({ port: 1 })).toMatchObject({ afterRestart: ['port'] })
    expect(await rewrite({ port: 1 })).toEqual({ result: 'unchanged', afterRestart: ['port'] })
  })

  it('running and queued requests finish under the configuration they began with', async () => {
    const { chat, rewrite, vendor, gateway } = await startGateway(
      { guard: { concurrency: { limit: 1 }, queue: { size: 10, timeoutMs: '20s' } } },
      { knobs: { tokens: 10, tokenMs: 20 } },
    )
    const stream = await chat({ stream: true })
    const waiting = [chat(), chat()]
    await until('they wait', () => gateway.spillway.snapshot().guards[0]?.queue.waiting === 2)
    const old = gateway.spillway.guard('openai')
    // Without a queue and with other vendor settings.
    await rewrite({ guard: { concurrency: { limit: 2 } } })
    await rewrite({ vendors: { openai: undefined as never }, routes: [{ vendor: 'anthropic' }] })
    expect((await chat()).status).toBe(404)
    expect(await stream.text()).toContain('[DONE]')
    for (const answer of await Promise.all(waiting)) expect(answer.status).toBe(200)
    expect(vendor.counts.arrived).toBe(3)
    await until('the old guard is closed', () => old.snapshot().closed)
    // And back again.
    await rewrite({ guard: { concurrency: { limit: 3 } } })
    expect((await chat()).status).toBe(200)
  })

  it('a removed vendor with open requests can be added again', async () => {
    const { chat, rewrite, gateway } = await startGateway(
      {},
      { knobs: { tokens: 10, tokenMs: 20 } },
    )
    const stream = await chat({ stream: true })
    const guard = gateway.spillway.guard('openai')
    await rewrite({ vendors: { openai: undefined as never }, routes: [{ vendor: 'anthropic' }] })
    await rewrite({})
    expect(gateway.spillway.guard('openai')).toBe(guard)
    expect(await stream.text()).toContain('[DONE]')
    expect((await chat()).status).toBe(200)
    expect(guard.snapshot().closed).toBe(false)
  })

  it('a reload keeps the guards and connections of unchanged vendors, whatever their key', async () => {
    const env = { ONE: 'key-one', TWO: 'key-two' }
    const { chat, rewrite, gateway, vendor } = await startGateway(
      { guard: { key: 'env:ONE' } },
      {},
      env,
    )
    await (await chat()).text()
    const guard = gateway.spillway.guard('openai')
    expect(await rewrite({ guard: { key: 'env:TWO' } })).toMatchObject({
      changed: ['vendors.openai.keys', 'vendors.anthropic.keys'],
    })
    await (await chat()).text()
    expect(gateway.spillway.guard('openai')).toBe(guard)
    expect(vendor.calls.map(({ key }) => key)).toEqual(['key-one', 'key-two'])
    await expectIdle({ gateway, vendor } as never)
  })

  it('a reload neither closes an open circuit nor resets used limits', async () => {
    const breaker = { consecutiveFailures: 2, openMs: '1m' }
    const userLimits = [{ per: 'user', limit: 1, windowMs: '1m' }]
    const { chat, messages, rewrite, vendor } = await startGateway({
      guard: { breaker, userLimits },
    })
    const failing = { headers: { 'x-mock': '{"status": 500}' } }
    await chat({}, { headers: { ...failing.headers, 'spillway-user': 'ann' } })
    await chat({}, { headers: { ...failing.headers, 'spillway-user': 'ben' } })
    await messages({}, { headers: { 'spillway-user': 'ann' } })
    for (const limit of [10, 20]) {
      await rewrite({ guard: { breaker, userLimits, concurrency: { limit } } })
      const open = await chat({}, { headers: { 'spillway-user': 'cat' } })
      expect(open.headers.get('spillway-decision')).toContain('CIRCUIT_OPEN')
      const limited = await messages({}, { headers: { 'spillway-user': 'ann' } })
      expect(limited.headers.get('spillway-decision')).toContain('USER_LIMITED')
    }
    expect(vendor.counts.arrived).toBe(3)
  })

  it('a reload refuses removed callers on open connections', async () => {
    const vendor = await startHttpVendor()
    const env = { ANN: 'key-of-ann', BEN: 'key-of-ben', VENDOR: 'vendor-key' }
    const ann = { key: 'env:ANN', user: 'ann' }
    const ben = { key: 'env:BEN', user: 'ben' }
    const file = (...callers: object[]) => ({
      vendors: { echo: { protocol: 'http', url: vendor.url, key: 'env:VENDOR' } },
      routes: [{ path: '/echo*', vendor: 'echo' }],
      callers,
    })
    const { url, rewrite } = await startGateway(file(ann, ben), {}, env)
    const talk = new Talk(url)
    let answerCount = 0
    const ask = async (key: string) => {
      await talk.send(get('/echo', `Authorization: Bearer ${key}\r\n`))
      await talk.receives(++answerCount)
    }
    for (const key of ['key-of-ann', 'key-of-ann', 'key-of-ben', 'key-of-anx', 'key-of-ann']) {
      await ask(key)
    }
    expect(talk.statuses).toEqual([200, 200, 200, 401, 200])
    expect(await rewrite(file(ben))).toMatchObject({ result: 'applied' })
    await ask('key-of-ann')
    await ask('key-of-ben')
    expect(talk.statuses.slice(answerCount - 2)).toEqual([401, 200])
    expect(vendor.requests).toHaveLength(5)
  })

  it('a reload starts the built-in mock vendor when it is needed', async () => {
    const { rewrite, url } = await startGateway()
    await rewrite({
      vendors: { inside: { protocol: 'openai', url: 'mock' } },
      routes: [{ vendor: 'inside' }],
    })
    const answer = await fetch(`${url}/v1/chat/completions`, {
      method: 'POST',
      headers: { 'x-mock': '{"latencyMs": 1, "tokens": 1}' },
      body: JSON.stringify({ model: 'gpt', messages: [] }),
    })
    expect(answer.headers.get('spillway-vendor')).toBe('inside')
  })
})
