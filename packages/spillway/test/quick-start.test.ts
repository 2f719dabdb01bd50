// test-group: io

/** The first example of the README, as users copy it: the OpenAI SDK, Redis and a shared limit. */
import { execFile } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { createSpillway, llmDefaults } from 'spillway'
import { redisStore } from 'spillway/redis'
import { expect, it, onTestFinished } from 'vitest'
import { startVendor } from './mock-client.js'
import { startRedis } from './redis-server.js'

const pathOf = (path: string) => fileURLToPath(new URL(`../../../${path}`, import.meta.url))

it('the first example of the README has at most 12 lines', () => {
  const readme = readFileSync(pathOf('README.md'), 'utf8')
  const [, language, code = ''] = /^```(ts|js)\n(.*?)^```$/ms.exec(readme) ?? []
  expect(language).toBe('ts')
  expect(code).toBe(readFileSync(pathOf('examples/src/quick-start.ts'), 'utf8'))
  expect(code.trimEnd().split('\n').length).toBeLessThanOrEqual(12)
})

it('two processes that run the first example share one limit through Redis', async () => {
  const { vendor, url } = await startVendor({ knobs: { tokens: 3 } })
  const redis = await startRedis()
  onTestFinished(() => redis.stop())
  const env = {
    ...process.env,
    REDIS_URL: redis.url,
    OPENAI_BASE_URL: `${url}/v1`,
    OPENAI_API_KEY: 'key',
  }
  const run = () =>
    promisify(execFile)(process.execPath, [pathOf('examples/dist/quick-start.js')], { env })
  const outputs = await Promise.all([run(), run()])
  expect(outputs.map(({ stdout, stderr }) => [stdout, stderr])).toEqual([
    ['0 1 2\n', ''],
    ['0 1 2\n', ''],
  ])
  expect(vendor.counts.succeeded).toBe(2)
  // A third pod sees what both have used.
  const store = redisStore({ url: redis.url, commandTimeoutMs: '10s' })
  const spillway = createSpillway({ store })
  onTestFinished(() => spillway.close())
  const limits = llmDefaults({ requestsPerMinute: 500, tokensPerMinute: 90_000 })
  const guard = spillway.guard('openai', limits)
  await guard.run(() => 'answer', { lane: 'gpt-4o' })
  const { guards } = await spillway.fleet()
  const used = guards[0]?.limits.filter(({ lane }) => lane === 'gpt-4o').map((each) => each.used)
  // The mock vendor counts 5 tokens in the question and 3 in the answer. Permits that arrive late, as on a busy
  // machine, count as spent, so it may be more.
  const [requests = 0, tokens = 0] = used ?? []
  expect(requests).toBeGreaterThanOrEqual(3)
  expect(tokens).toBeGreaterThanOrEqual(2 * (5 + 3))
})

it('five processes with a limit of six answer at most six of ten calls and refuse the others', async () => {
  const { vendor, url } = await startVendor({ knobs: { tokens: 3 } })
  const redis = await startRedis()
  onTestFinished(() => redis.stop())
  const env = {
    ...process.env,
    REDIS_URL: redis.url,
    OPENAI_BASE_URL: `${url}/v1`,
    OPENAI_API_KEY: 'key',
  }
  // Without Redis, or if it replies late, a pod uses its share: on a busy machine each pod has to wait for Redis instead.
  const example = readFileSync(pathOf('examples/dist/shared-limit.js'), 'utf8')
  const patient = example
    .replace('process.env.REDIS_URL', "process.env.REDIS_URL, commandTimeoutMs: '1m'")
    .replace('const spillway', "await store.connected('1m');\nconst spillway")
  expect(patient).toMatch(/commandTimeoutMs.*connected/s)
  const run = () =>
    promisify(execFile)(process.execPath, ['--input-type=module', '--eval', patient], {
      env,
      cwd: pathOf('examples'),
    })
  const outputs = await Promise.all([run(), run(), run(), run(), run()])
  const lines = outputs.flatMap(({ stdout }) => stdout.trimEnd().split('\n'))
  const answered = lines.filter((line) => line === 'answered').length
  // VENDOR_LIMITED, or QUEUE_TIMEOUT on a busy machine.
  const refused = lines.filter((line) => line.startsWith('refused: ')).length
  expect([answered + refused, lines.length]).toEqual([10, 10])
  // Permits that arrive late, as on a busy machine, count as spent, so it may be fewer.
  expect(answered).toBeGreaterThanOrEqual(1)
  expect(answered).toBeLessThanOrEqual(6)
  expect(vendor.counts.succeeded).toBe(answered)
})

it('the BullMQ worker and the job queue of its migration guide print the same result', async () => {
  const redis = await startRedis()
  onTestFinished(() => redis.stop())
  const env = { ...process.env, REDIS_URL: redis.url }
  const run = (name: string) =>
    promisify(execFile)(process.execPath, [pathOf(`examples/dist/${name}.js`)], { env })
  const [before, after] = await Promise.all([run('migrate-bullmq-before'), run('migrate-bullmq')])
  expect([before.stdout, after.stdout]).toEqual(['summary of home\n', 'summary of home\n'])
})
