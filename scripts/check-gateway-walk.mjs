// npm run check -- gateway-walk: counts the gateway's files that one chat request passes. The gateway has callers
// with keys and a vendor with limits, a breaker and token counting, as most gateways have.

import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { measureWalk } from './check-walk.mjs'
import { isMain, root } from './run-command.mjs'

const MAX_FILES = 35
const DIST = join(root, 'packages/gateway/dist/')

const CONFIG = {
  port: 0,
  host: '127.0.0.1',
  admin: { port: 0 },
  callers: [{ key: 'env:CALLER_KEY', user: 'ada' }],
  vendors: {
    openai: {
      protocol: 'openai',
      key: 'env:VENDOR_KEY',
      breaker: { failureRate: 0.5, minimumCalls: 10 },
      limits: [{ unit: 'tokens', limit: 1_000_000_000, windowMs: '1m' }],
      concurrency: { limit: 100 },
    },
  },
}
const ENV = { CALLER_KEY: 'key-of-a-caller', VENDOR_KEY: 'key-of-the-vendor' }

const load = (path) => import(pathToFileURL(join(root, path)).href)

if (isMain(import.meta.url)) {
  const { createMockVendor } = await load('packages/mock-vendor/dist/index.js')
  const { createGateway } = await load('packages/gateway/dist/gateway.js')
  const { loadConfig } = await load('packages/gateway/dist/config/load.js')
  const vendor = createMockVendor({ knobs: { tokens: 3, latencyMs: 0, tokenMs: 0 } })
  const { url } = await vendor.start()
  const written = structuredClone(CONFIG)
  written.vendors.openai.url = url
  const config = loadConfig({ file: 'walk.yaml', text: JSON.stringify(written), env: ENV })
  let recorded = () => {}
  const log = { request: () => recorded(), event() {}, failure() {}, close() {} }
  const gateway = await createGateway(config, { log })
  const { port } = await gateway.start()

  const files = await measureWalk(async () => {
    const isRecorded = new Promise((resolve) => {
      recorded = resolve
    })
    const answer = await fetch(`http://127.0.0.1:${port}/v1/chat/completions`, {
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        authorization: `Bearer ${ENV.CALLER_KEY}`,
      },
      body: JSON.stringify({ model: 'gpt', messages: [{ role: 'user', content: 'hello' }] }),
    })
    await answer.text()
    if (answer.status !== 200) throw new Error(`the gateway answered with ${answer.status}`)
    await isRecorded
  }, DIST)
  await gateway.close({ graceMs: 0, delayMs: 0 })
  await vendor.close()

  if (process.argv.includes('--list')) {
    for (const { file, functions } of files) {
      process.stdout.write(`${String(functions.length).padStart(4)}  ${file}\n`)
    }
  }
  process.stdout.write(`one chat request passes ${files.length} gateway files\n`)
  if (files.length > MAX_FILES) {
    process.stdout.write(`${files.length} files are more than the limit of ${MAX_FILES}\n`)
    process.exitCode = 1
  }
}
