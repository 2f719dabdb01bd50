/** A gateway in this process in front of a mock vendor, with shortcuts for requests. */
import { createMockVendor, type MockVendor, type MockVendorOptions } from '@spillway/mock-vendor'
import { onTestFinished } from 'vitest'
import { until } from '../../spillway/test/streams/stream-kit.js'
import { loadConfig } from '../src/config/load.js'
import { createGateway, type Gateway, type GatewayOptions } from '../src/gateway.js'
import type { ReloadReport } from '../src/reload/reloads.js'
import type { RequestRecord } from '../src/request/record.js'

export interface Written {
  /** Options of the vendors `openai` and `anthropic`, both of which are the mock vendor. */
  guard?: object
  /** Other vendors. One without a URL is the mock vendor as well. */
  vendors?: Record<string, object>
  routes?: object[]
  [option: string]: unknown
}

export interface RunningGateway {
  readonly url: string
  readonly adminUrl: string
  readonly gateway: Gateway
  readonly vendor: MockVendor
  readonly vendorUrl: string
  readonly records: RequestRecord[]
  /** Notices logged for operators. */
  readonly notices: { level: string; message: string; facts: object }[]
  /** Replaces the file by this configuration or text and reloads it. */
  rewrite(written: Written | string): Promise<ReloadReport>
  /** Unexpected errors. */
  readonly failures: unknown[]
  /** Sends a request to the OpenAI endpoint. */
  chat(
    body?: object,
    init?: { headers?: Record<string, string>; signal?: AbortSignal },
  ): Promise<Response>
  messages(body?: object, init?: { headers?: Record<string, string> }): Promise<Response>
}

export async function startVendor(options: MockVendorOptions = {}) {
  const vendor = createMockVendor(options)
  onTestFinished(() => vendor.close())
  const { url } = await vendor.start()
  return { vendor, url }
}

const MESSAGES = [{ role: 'user', content: 'twelve chars' }]

/** Starts a gateway that is closed at once when the test ends. */
export async function startGateway(
  written: Written = {},
  mock: MockVendorOptions = {},
  env: Record<string, string> = {},
  options: Pick<GatewayOptions, 'clock'> = {},
): Promise<RunningGateway> {
  const { vendor, url: vendorUrl } = await startVendor(mock)
  let text = fileOf(written, vendorUrl)
  const read = () => loadConfig({ file: 'test.yaml', text, env })
  const config = read()
  const records: RequestRecord[] = []
  const notices: RunningGateway['notices'] = []
  const failures: unknown[] = []
  const log = {
    notice: (level: string, message: string, facts: object) =>
      notices.push({ level, message, facts }),
    request: (record: RequestRecord) => records.push(record),
    event: () => {},
    failure: (error: unknown) => failures.push(error),
    close: () => {},
  }
  const gateway = await createGateway(config, { log, read, ...options })
  onTestFinished(() => gateway.close({ graceMs: 0, delayMs: 0 }))
  const { port, adminPort } = await gateway.start()
  const url = `http://127.0.0.1:${port}`
  const post = (
    path: string,
    body: object,
    init: { headers?: Record<string, string>; signal?: AbortSignal } = {},
  ) =>
    fetch(`${url}${path}`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...init.headers },
      body: JSON.stringify(body),
      signal: init.signal ?? null,
    })
  return {
    url,
    adminUrl: `http://127.0.0.1:${adminPort}`,
    gateway,
    vendor,
    vendorUrl,
    records,
    notices,
    rewrite(next) {
      text = typeof next === 'string' ? next : fileOf(next, vendorUrl)
      return gateway.reload('test')
    },
    failures,
    chat: (body = {}, init = {}) =>
      post('/v1/chat/completions', { model: 'gpt', messages: MESSAGES, ...body }, init),
    messages: (body = {}, { headers = {} } = {}) =>
      post(
        '/v1/messages',
        { model: 'claude', max_tokens: 100, messages: MESSAGES, ...body },
        { headers: { 'anthropic-version': '2023-06-01', ...headers } },
      ),
  }
}

/** Routes as without `routes`, but they name models that tests use: each has a lane from its first request on. */
function routesNaming(vendor: 'openai' | 'anthropic', ...models: string[]): object[] {
  const name = vendor === 'openai' ? '/v1/*' : '/v1/messages*'
  return [
    { name, vendor, models: [...models, '*'] },
    { name: `${name} without a model`, vendor },
  ]
}

const ROUTES = [
  ...routesNaming('anthropic', 'claude'),
  ...routesNaming('openai', 'gpt', 'a', 'b', 'gpt-10', 'gpt-2000', 'a"b\\c'),
]

function fileOf({ guard = {}, vendors = {}, ...rest }: Written, vendorUrl: string): string {
  const ours = { url: vendorUrl, concurrency: { limit: 50 }, ...guard }
  // JSON is valid YAML.
  return JSON.stringify({
    port: 0,
    host: '127.0.0.1',
    admin: { port: 0 },
    vendors: {
      openai: { protocol: 'openai', ...ours },
      anthropic: { protocol: 'anthropic', ...ours },
      ...Object.fromEntries(
        // `undefined` leaves a vendor out.
        Object.entries(vendors).map(([name, each]) => [name, each && { url: vendorUrl, ...each }]),
      ),
    },
    ...(Object.keys(vendors).length === 0 && { routes: ROUTES }),
    ...rest,
  })
}

/** Expects that the guards hold nothing and the vendor has no open request. */
export async function expectIdle({ gateway, vendor }: RunningGateway): Promise<void> {
  await until('the vendor is idle', () => vendor.atOnce === 0)
  const active = () =>
    Object.values(gateway.spillway.snapshot().guards).reduce((sum, each) => sum + each.active, 0)
  await until('every slot is free', () => active() === 0)
}
