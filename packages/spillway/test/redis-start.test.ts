// test-group: io, slow

/**
 * Programs that use a Redis store from their first line, each in its own process. Several run at once,
 * because some of them wait for a connection.
 */
import { spawn } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createSpillway } from '../src/index.js'
import { createSharedRateLimiter } from '../src/shared/rate-limiter/rate-limiter.js'
import { redisStore } from '../src/store/redis/redis-store.js'
import { usualOrLong } from './long-run.js'
import { freePort, type RedisServer, startRedis } from './redis-server.js'
import { type Servers, START_MS, TOPOLOGIES } from './topologies.js'

const PACKAGE = fileURLToPath(new URL('..', import.meta.url))
const DRIVERS = ['redis', 'ioredis']

interface Ended {
  code: number | null
  stdout: string
  stderr: string
}

/** Two programs at once keep two cores busy. With more, a slow machine takes seconds for a connection. */
const turns = [Promise.resolve(), Promise.resolve()]
let nextTurn = 0

/** Runs a program until it ends by itself. `options` are those of its store. */
function runProgram(options: object, body: string, ...nodeArgs: string[]): Promise<Ended> {
  const turn = nextTurn++ % turns.length
  const ended = (turns[turn] as Promise<void>).then(() => startProgram(options, body, nodeArgs))
  turns[turn] = ended.then(() => {})
  return ended
}

function startProgram(options: object, body: string, nodeArgs: string[]): Promise<Ended> {
  const program = `
    import { createSpillway } from 'spillway'
    import { redisStore } from 'spillway/redis'
    import { createJobQueue, createSharedRateLimiter, createUserLimits } from 'spillway/shared'
    const store = redisStore(JSON.parse(process.argv[1]))
    const spillway = createSpillway({ store })
    ${body}`
  const text = JSON.stringify({ commandTimeoutMs: 5_000, ...options })
  const child = spawn(
    process.execPath,
    [...nodeArgs, '--input-type=module', '--eval', program, text],
    {
      cwd: PACKAGE,
      // Kills a program that does not end, which then has no exit code. A busy machine starts one slowly.
      timeout: 60_000,
    },
  )
  let stdout = ''
  let stderr = ''
  child.stdout.on('data', (chunk) => {
    stdout += chunk
  })
  child.stderr.on('data', (chunk) => {
    stderr += chunk
  })
  return new Promise((resolve) => {
    child.once('close', (code) => resolve({ code, stdout: stdout.trim(), stderr }))
  })
}

const LIMITS = `[{ limit: 5, windowMs: '1h' }]`
const USER_LIMITS = `[{ per: 'user', limit: 5, windowMs: '1h' }]`

const FIRST_CALLS = [
  [
    'a call of a guard with only limits',
    `const guard = spillway.guard('vendor', { limits: ${LIMITS} })
     console.log(await guard.run(() => 'ran'))`,
  ],
  [
    'a call of a guard with only userLimits',
    `const guard = spillway.guard('vendor', { userLimits: ${USER_LIMITS} })
     console.log(await guard.run(() => 'ran', { user: 'u' }))`,
  ],
  [
    'a call that the program does not await',
    `const guard = spillway.guard('vendor', { limits: ${LIMITS}, userLimits: ${USER_LIMITS} })
     guard.run(() => console.log('ran'), { user: 'u' })`,
  ],
  [
    'a call that waits for its limit',
    `const guard = spillway.guard('vendor', {
       limits: [{ limit: 1, windowMs: 200 }], queue: { size: 5, timeoutMs: '10s' },
     })
     await guard.run(() => {})
     console.log(await guard.run(() => 'ran'))`,
  ],
  [
    'a job that is added',
    `spillway.guard('vendor', {})
     const { id } = await spillway.jobQueue('jobs', { guard: 'vendor' }).add({ n: 1 })
     console.log(typeof id === 'string' ? 'ran' : 'no id')`,
  ],
  [
    'a job that is added to a queue without a guard',
    `const { id } = await createJobQueue({ store, name: 'jobs', guard: 'vendor' }).add({ n: 1 })
     console.log(typeof id === 'string' ? 'ran' : 'no id')`,
  ],
  [
    'a check of user limits without a guard',
    `const limits = createUserLimits({ store, levels: ${USER_LIMITS} })
     const { allowed, remaining } = await limits.check({ user: 'u' })
     console.log(allowed && remaining === 4 ? 'ran' : 'not counted')`,
  ],
  [
    'a permit of a rate limiter without a guard',
    `const limiter = createSharedRateLimiter({ store, name: 'alone', limits: ${LIMITS} })
     const permit = await limiter.acquire()
     console.log(permit ? 'ran' : 'no permit')`,
  ],
  ['the connection itself', `await store.connected(); console.log(store.ready && 'ran')`],
] as const

/** For a server that answers: a slow answer must not look like a missing one. */
const patient = { commandTimeoutMs: 60_000 }

describe.concurrent.each(DRIVERS)('a program with %s', (driver) => {
  let server: RedisServer
  beforeAll(async () => {
    server = await startRedis()
  })
  afterAll(() => server.stop())

  it.each(usualOrLong([], [...FIRST_CALLS]))(
    'a program ends with code 0 after %s',
    async (_, body) => {
      const prefix = `first-${Math.random()}`
      const { code, stdout, stderr } = await runProgram(
        { ...patient, url: server.url, driver, prefix },
        body,
      )
      expect({ code, stdout, stderr }).toEqual({ code: 0, stdout: 'ran', stderr: '' })
    },
  )

  it('a program stays alive for the first call of each kind and ends with code 0 after the last one', async () => {
    // Each call comes first on a store of its own. An idle connection does not keep the program alive.
    const steps = FIRST_CALLS.map(
      ([, body], index) => `{
        const store = redisStore({ ...JSON.parse(process.argv[1]), prefix: 'step-${index}-${driver}' })
        const spillway = createSpillway({ store })
        ${body}
      }`,
    )
    const { code, stdout, stderr } = await runProgram(
      { ...patient, url: server.url, driver },
      steps.join('\n'),
    )
    const ran = FIRST_CALLS.map(() => 'ran').join('\n')
    expect({ code, stdout, stderr }).toEqual({ code: 0, stdout: ran, stderr: '' })
  })

  const levels = [{ per: 'user', limit: 1, windowMs: '1h' }] as const
  const limits = [{ unit: 'tokens', limit: 1_000, windowMs: '1h' as const }]
  const prefix = `counted-${driver}`
  let counted: Promise<Ended> | undefined
  /**
   * Makes a call as soon as it starts, and settles another one at its end. `jitterMs`: a permit that arrives late
   * would count as spent.
   */
  const runCounted = () => {
    counted ??= runProgram(
      { ...patient, url: server.url, driver, prefix },
      `const guard = spillway.guard('vendor', { userLimits: ${JSON.stringify(levels)} })
       console.log(await guard.run(() => 'ran', { user: 'u' }).catch((error) => error.code))
       await store.connected({ timeoutMs: '60s' })
       const last = spillway.guard('last', { limits: ${JSON.stringify(limits)}, jitterMs: '1m' })
       await last.run(({ settle }) => settle({ tokens: 100 }), { cost: { tokens: 900 } })`,
    )
    return counted
  }

  it('a program counts its first calls in Redis and not locally', async () => {
    expect((await runCounted()).stdout).toBe('ran')
    const store = redisStore({ ...patient, url: server.url, prefix })
    const spillway = createSpillway({ store })
    const guard = spillway.guard('vendor', { userLimits: levels })
    await expect(guard.run(() => 'ran', { user: 'u' })).rejects.toThrow(
      expect.objectContaining({ code: 'USER_LIMITED' }),
    )
    await spillway.close()
    await store.close()
  })

  it('a program does not end before a settlement at its end has reached Redis', async () => {
    expect(await runCounted()).toMatchObject({ code: 0, stderr: '' })
    const store = redisStore({ ...patient, url: server.url, prefix })
    const limiter = createSharedRateLimiter({ store, name: 'last', limits, jitterMs: '1m' })
    const figures = await limiter.figures()
    expect(figures.limits).toMatchObject([{ used: 100 }])
    await limiter.close()
    await store.close()
  })

  it('a program with only stores and guards that are never called ends with code 0, whether Redis is reachable or not', async () => {
    const down = `redis://127.0.0.1:${await freePort()}`
    const { code } = await runProgram(
      { url: server.url, driver },
      `for (const url of ['${server.url}', '${down}']) {
         redisStore({ url, driver: '${driver}' })
         const store = redisStore({ url, driver: '${driver}' })
         createSpillway({ store }).guard('vendor', { limits: ${LIMITS}, userLimits: ${USER_LIMITS}, breaker: {} })
       }`,
    )
    expect(code).toBe(0)
  })

  it('a program adds a job to a Redis that starts a moment later', async () => {
    const port = await freePort()
    const url = `redis://127.0.0.1:${port}`
    const added = runProgram(
      { url, driver },
      `spillway.guard('vendor', {})
       await spillway.jobQueue('jobs', { guard: 'vendor' }).add({ n: 1 })
       console.log('added')`,
    )
    const late = await startRedis({ port })
    try {
      expect(await added).toMatchObject({ code: 0, stdout: 'added' })
    } finally {
      await late.stop()
    }
  })
})

/** An argument of Node that makes it find neither client library. */
const WITHOUT_DRIVERS = `--import=${asModule(`
  import { register } from 'node:module'
  register(${JSON.stringify(
    asModule(`
      export const resolve = (name, context, next) => next(/^(io)?redis$/.test(name) ? 'not-installed' : name, context)`),
  )})`)}`

function asModule(text: string): string {
  return `data:text/javascript,${encodeURIComponent(text)}`
}

it('a missing driver package gives one warning and an error with the install command', async () => {
  const { code, stdout } = await runProgram(
    { url: 'redis://127.0.0.1:1' },
    `process.on('warning', ({ name, message }) => console.log(name, message))
     await new Promise((resolve) => process.once('warning', resolve))
     await store.connected({ timeoutMs: 100 }).catch((error) => console.log(error.message))
     await store.close()`,
    WITHOUT_DRIVERS,
  )
  const message = "the package 'redis' is missing: npm install redis, or pass your own client"
  const lines = stdout.split('\n')
  expect(lines.filter((line) => line === `SpillwayWarning ${message}`)).toHaveLength(1)
  expect(lines.at(-1)).toContain(`is unreachable: ${message}`)
  expect(code).toBe(0)
})

it('a store with emitWarnings: false keeps its warnings and Node prints none', async () => {
  const { code, stdout, stderr } = await runProgram(
    { url: 'redis://127.0.0.1:1', emitWarnings: false },
    `while (store.warnings.length === 0) await store.connected({ timeoutMs: 50 }).catch(() => {})
     console.log(store.warnings.join())
     await store.close()`,
  )
  expect(stdout).toMatch(/^the Redis store at .* is unreachable: .*ECONNREFUSED/)
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
})

describe.concurrent('a program whose Redis is not there', () => {
  const SEEN = `
    process.on('warning', ({ name, code, message }) => console.log(JSON.stringify({ name, code, message })))
    const { onEvent } = await import('spillway')
    onEvent(({ type, ...facts }) => type === 'store.unreachable' && console.log(JSON.stringify(facts)))`

  describe.each(DRIVERS)('with %s', (driver) => {
    let ended: Promise<Ended & { url: string }> | undefined
    const run = async () => {
      const address = `127.0.0.1:${await freePort()}`
      const program = await runProgram(
        { url: `redis://user:secret@${address}/3`, driver },
        // On a busy machine not even the refusal may have arrived at the first check.
        `${SEEN}
         const guard = spillway.guard('vendor', { userLimits: ${USER_LIMITS} })
         const other = spillway.guard('other', { limits: ${LIMITS} })
         for (let call = 0; call < 3; call++) await guard.run(() => {}, { user: 'u' })
         await other.run(() => {})
         await new Promise((resolve) => setTimeout(resolve, 1_500))
         let error
         do error = await store.connected({ timeoutMs: 100 }).catch((error) => error)
         while (error.cause?.code !== 'ECONNREFUSED')
         console.log(JSON.stringify({ code: error.code, message: error.message }))
         process.exitCode = 7`,
      )
      return { ...program, url: `redis://${address}/3` }
    }
    const runOnce = () => {
      ended ??= run()
      return ended
    }

    it.each([driver])('an absent Redis gives one warning without password (%s)', async () => {
      const { stdout, url } = await runOnce()
      expect(stdout).not.toContain('secret')
      const lines = stdout.split('\n').map((line) => JSON.parse(line))
      expect(lines).toHaveLength(3)
      expect(lines).toContainEqual({
        name: 'SpillwayWarning',
        code: 'SPILLWAY_STORE_UNREACHABLE',
        message: expect.stringContaining(`the Redis store at ${url} is unreachable: `),
      })
      // On a busy machine nothing may have answered yet, not even with a refusal.
      const why = expect.stringMatching(/ECONNREFUSED|no connection within/)
      expect(lines).toContainEqual({ name: 'redis', url, why })
    })

    it.each([driver])('a program can fail at start with store.connected (%s)', async () => {
      const { code, stdout, url } = await runOnce()
      expect(code).toBe(7)
      const why = `connect ECONNREFUSED ${new URL(url).host}`
      expect(JSON.parse(stdout.split('\n').at(-1) ?? '')).toEqual({
        code: 'STORE_UNAVAILABLE',
        message: `the Redis store at ${url} is unreachable: ${why}`,
      })
    })
  })

  it('a server that accepts connections and never answers causes the same warning', async () => {
    const { createServer } = await import('node:net')
    const silent = createServer(() => {}).listen(0, '127.0.0.1')
    await new Promise((resolve) => silent.once('listening', resolve))
    const { port } = silent.address() as { port: number }
    const { stdout } = await runProgram(
      { url: `redis://127.0.0.1:${port}` },
      `${SEEN}
       // Keeps the program alive until it has warned.
       setInterval(() => {}, 1_000)
       process.on('warning', () => setImmediate(() => process.exit()))`,
    )
    silent.close()
    expect(stdout).toContain('SPILLWAY_STORE_UNREACHABLE')
    expect(stdout).toMatch(/no connection within|not connected within/)
  })

  it.each(DRIVERS)(
    'an unusable Redis gives one warning with the same code (%s)',
    async (driver) => {
      const server = await startRedis()
      const { stdout } = await runProgram(
        { url: `${server.url}/99`, driver },
        `${SEEN}
       await spillway.guard('vendor', { userLimits: ${USER_LIMITS} }).run(() => {}, { user: 'u' })
       await store.connected({ timeoutMs: 1_500 }).catch(() => {})
       await store.close()`,
      )
      await server.stop()
      const lines = stdout.split('\n').map((line) => JSON.parse(line))
      const why = expect.stringContaining('does not have this database')
      expect(lines).toHaveLength(2)
      expect(lines).toContainEqual({
        name: 'SpillwayWarning',
        code: 'SPILLWAY_STORE_UNREACHABLE',
        message: why,
      })
      expect(lines).toContainEqual({ name: 'redis', url: `${server.url}/99`, why })
    },
  )

  it('adding a job without Redis fails after a while, and at once from then on', async () => {
    const port = await freePort()
    const { stdout } = await runProgram(
      { url: `redis://127.0.0.1:${port}` },
      `process.on('warning', () => {})
       spillway.guard('vendor', {})
       const queue = spillway.jobQueue('jobs', { guard: 'vendor' })
       const fails = () => queue.add({}).catch((error) => console.log(error.code))
       const startMs = performance.now()
       await fails()
       const firstMs = performance.now()
       await fails()
       console.log(performance.now() - firstMs < (firstMs - startMs) / 2)`,
    )
    expect(stdout.split('\n')).toEqual(['STORE_UNAVAILABLE', 'STORE_UNAVAILABLE', 'true'])
  })
})

describe.concurrent('a program with Sentinels and a cluster', () => {
  const topologies: Servers[] = []
  beforeAll(async () => {
    const starting = (['Sentinels', 'a cluster'] as const).map((name) => TOPOLOGIES[name]())
    topologies.push(...(await Promise.all(starting)))
  }, START_MS)
  afterAll(() => Promise.all(topologies.map((servers) => servers.stop())))

  it.each(DRIVERS)(
    'a program ends with code 0 after a call and a job with Sentinels and with a cluster (%s)',
    async (driver) => {
      const common = { ...patient, driver, prefix: `first-${driver}` }
      const stores = topologies.map(({ connection }) => ({ ...common, ...connection }))
      const { code, stdout, stderr } = await runProgram(
        stores[0] as object,
        `for (const options of ${JSON.stringify(stores)}) {
           const store = redisStore(options)
           const spillway = createSpillway({ store })
           const guard = spillway.guard('vendor', { limits: ${LIMITS}, userLimits: ${USER_LIMITS} })
           await spillway.jobQueue('jobs', { guard }).add({ n: 1 })
           console.log(await guard.run(() => 'ran', { user: 'u' }))
         }`,
      )
      expect({ code, stdout, stderr }).toEqual({ code: 0, stdout: 'ran\nran', stderr: '' })
    },
  )
})
