// test-group: io, slow

/** A gateway process that has just started, and a vendor whose failures are faster than its answers. */
import { once } from 'node:events'
import { Agent, createServer, request } from 'node:http'
import type { AddressInfo } from 'node:net'
import { expect, it, onTestFinished } from 'vitest'
import { startGatewayProcess } from './gateway-process.js'

const ANSWER_MS = 900
const CONNECTIONS = 100
const FOR_MS = 5_000
const BAD_SHARE = 0.02

/** Answers after 0.9 s. A request with the user `bad` gets a 500 at once, at every attempt. */
async function startSlowVendor(): Promise<string> {
  const server = createServer((incoming, vendorRequest) => {
    let body = ''
    incoming.setEncoding('utf8').on('data', (chunk) => {
      body += chunk
    })
    incoming.on('end', () => {
      const bad = body.includes('"user":"bad"')
      setTimeout(
        () => {
          vendorRequest.writeHead(bad ? 500 : 200, { 'content-type': 'application/json' })
          vendorRequest.end(bad ? '{"error":{"message":"broken"}}' : '{"id":"1","choices":[]}')
        },
        bad ? 0 : ANSWER_MS,
      )
    })
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  onTestFinished(() => {
    server.close()
    server.closeAllConnections()
  })
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

function post(url: string, agent: Agent, user: string): Promise<number> {
  return new Promise((resolve, reject) => {
    const vendorRequest = request(
      `${url}/v1/chat/completions`,
      { method: 'POST', agent, headers: { 'content-type': 'application/json' } },
      (answer) => {
        answer.resume().on('end', () => resolve(answer.statusCode ?? 0))
      },
    )
    vendorRequest.on('error', reject)
    vendorRequest.end(JSON.stringify({ model: 'gpt-4o', messages: [], user }))
  })
}

it('a gateway refuses no request after a cold start if 2 % of the requests fail at every attempt', async () => {
  const { url } = await startGatewayProcess({
    config: {
      vendors: {
        openai: {
          protocol: 'openai',
          url: await startSlowVendor(),
          breaker: { failureRate: 0.5, minimumCalls: 10, consecutiveFailures: 10, openMs: '10s' },
          retry: { attempts: 3 },
        },
      },
    },
  })
  const agent = new Agent({ keepAlive: true, maxSockets: CONNECTIONS })
  onTestFinished(() => agent.destroy())
  const statuses = new Map<number, number>()
  const untilMs = performance.now() + FOR_MS
  let sent = 0
  await Promise.all(
    Array.from({ length: CONNECTIONS }, async () => {
      while (performance.now() < untilMs) {
        const bad = ++sent % (1 / BAD_SHARE) === 0
        const status = await post(url, agent, bad ? 'bad' : 'good')
        statuses.set(status, (statuses.get(status) ?? 0) + 1)
      }
    }),
  )
  expect(statuses.get(500)).toBeGreaterThan(0)
  expect([...statuses.keys()].sort()).toEqual([200, 500])
})
