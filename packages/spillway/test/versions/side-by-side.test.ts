// test-group: io, slow

/**
 * Pods of the previous commit's build beside pods of the current one, on one Redis. With the same key format they
 * share all state. With another format each version has its own state, as docs/operations/upgrading.md says.
 */
import { type ChildProcess, fork } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { type RedisServer, startRedis } from '../redis-server.js'
import { previousBuild } from './previous-build.js'

const pathOf = (path: string) => fileURLToPath(new URL(path, import.meta.url))
const PROGRAM = pathOf('../fixtures/version-pod.mjs')
const CURRENT = pathOf('../..')
const PAGE = pathOf('../../../../docs/operations/upgrading.md')

const previous = previousBuild()
if (previous === undefined) {
  console.warn(
    'No earlier commit to compare with (a shallow clone?): both pods run the current build. ' +
      'Run `git fetch --deepen=1`, or set SPILLWAY_PREVIOUS to the folder of a built package.',
  )
}

interface Pod {
  ask<T>(task: string, what?: object): Promise<T>
}

/** On a busy machine a permit may arrive late. It should be used anyway. */
const JITTER_MS = 20_000

type Ends = Record<string, number>

const children: ChildProcess[] = []

async function startPod(folder: string, url: string): Promise<Pod> {
  const child = fork(PROGRAM, [folder, url], { stdio: ['ignore', 'inherit', 'inherit', 'ipc'] })
  children.push(child)
  const waiting = new Map<number, (reply: { result?: unknown; problem?: string }) => void>()
  child.on('message', (reply: { number: number; result?: unknown; problem?: string }) =>
    waiting.get(reply.number)?.(reply),
  )
  child.on('exit', (code) => {
    for (const settle of waiting.values()) settle({ problem: `the pod exited with ${code}` })
  })
  const reply = (number: number) =>
    new Promise<unknown>((resolve, reject) => {
      waiting.set(number, ({ result, problem }) =>
        problem === undefined ? resolve(result) : reject(new Error(problem)),
      )
    })
  await reply(0)
  let number = 0
  return {
    ask: <T>(task: string, what: object = {}) => {
      const answer = reply(++number) as Promise<T>
      child.send({ task, number, ...what })
      return answer
    },
  }
}

let server: RedisServer
/** Two of the previous build, then two of the current one. */
let pods: Pod[]
let before: Pod
let after: Pod
/** How keys of each version begin: with the prefix and the number of the format. */
let formats: { limits: string; jobs: string }[]

beforeAll(async () => {
  server = await startRedis()
  const folders = [previous?.folder ?? CURRENT, CURRENT]
  pods = []
  formats = []
  for (const [index, folder] of folders.entries()) {
    const pod = await startPod(folder, server.url)
    pods.push(pod)
    // A guard of its own, because the pod before goes on to write keys of its version.
    const name = `probe-${index}`
    const options = { limits: [{ limit: 5, windowMs: '1h' }], breaker: { failureRate: 0.5 } }
    await pod.ask('call', { name, options })
    await pod.ask('addJob', { name, options, queue: 'probe' })
    const jobs = await keyPrefix(new RegExp(`^[^:]+:\\{${name}\\}:j\\d+:`))
    formats.push({
      limits: await keyPrefix(new RegExp(`^[^:]+:(?=\\{${name}\\})`)),
      jobs: jobs.replace(name, 'GUARD'),
    })
  }
  const [one, other] = await Promise.all(folders.map((folder) => startPod(folder, server.url)))
  pods = [pods[0], one, pods[1], other] as Pod[]
  ;[before, after] = [pods[0], pods[2]] as [Pod, Pod]
})
afterAll(async () => {
  for (const child of children) child.kill()
  await server?.stop()
})

/** The part that the pattern finds in the keys that exist now. There has to be exactly one. */
async function keyPrefix(pattern: RegExp): Promise<string> {
  const keys = (await server.send('KEYS', '*')) as string[]
  const found = new Set(keys.flatMap((key) => pattern.exec(key)?.[0] ?? []))
  expect([...found]).toHaveLength(1)
  return [...found][0] as string
}

const isShared = (part: 'limits' | 'jobs') => formats[0]?.[part] === formats[1]?.[part]

/** A limit holds for all pods, or for the pods of each version if their formats differ. */
const granted = (limit: number) => (isShared('limits') ? limit : 2 * limit)

/** Each pod makes some calls alone, then all of them more than the limit has left. */
async function passedOf(
  guard: object,
  calls: { alone: number; together: number },
): Promise<number> {
  let passed = 0
  for (const pod of calls.alone > 0 ? pods : []) {
    const ends = await pod.ask<Ends>('call', { ...guard, calls: calls.alone })
    expect(ends).toEqual({ passed: calls.alone })
    passed += calls.alone
  }
  const all = pods.map((pod) => pod.ask<Ends>('call', { ...guard, calls: calls.together }))
  for (const ends of await Promise.all(all)) passed += ends.passed ?? 0
  return passed
}

describe(`pods of ${previous?.what ?? 'the current build'} and of the current build`, () => {
  it('docs/operations/upgrading.md has a row for each key format that says what happens beside the previous one', () => {
    const page = readFileSync(PAGE, 'utf8')
    const rows = page.split('\n').map((line) => line.split('|').map((cell) => cell.trim()))
    for (const format of Object.values(formats[1] as object)) {
      const row = rows.find((cells) => cells[1] === `\`${format}\``)
      expect(row, format).toEqual([
        '',
        expect.any(String),
        expect.any(String),
        expect.stringMatching(/./),
        '',
      ])
    }
  })

  for (const algorithm of ['sliding-window', 'token-bucket', 'fixed-window']) {
    it(`a ${algorithm} limit stays exact across two versions with one key format`, async () => {
      const limits = [{ algorithm, limit: 40, windowMs: '30d' }]
      const guard = { name: `limit-${algorithm}`, options: { limits, jitterMs: JITTER_MS } }
      expect(await passedOf(guard, { alone: 5, together: 20 })).toBe(granted(40))
    })
  }

  it('a leaky-bucket limit grants one permit per beat across two versions with one key format', async () => {
    const limits = [{ algorithm: 'leaky-bucket', limit: 1, windowMs: '30d' }]
    const guard = { name: 'leaky', options: { limits, jitterMs: JITTER_MS } }
    expect(await passedOf(guard, { alone: 0, together: 5 })).toBe(granted(1))
  })

  it('a user limit stays exact across two versions with one key format', async () => {
    const userLimits = [{ per: 'user', limit: 12, windowMs: '1h' }]
    const guard = { name: 'users', user: 'ann', options: { userLimits } }
    expect(await passedOf(guard, { alone: 2, together: 6 })).toBe(granted(12))
  })

  it('a breaker that pods of one version opened is open for the other version with the same key format', async () => {
    const options = { breaker: { consecutiveFailures: 3, openMs: '1h' } }
    for (const [name, failing, other] of [
      ['opened-before', before, after],
      ['opened-after', after, before],
    ] as const) {
      expect(await other.ask('call', { name, options })).toEqual({ passed: 1 })
      const isOpenFor = (pod: Pod, what: object) => async () =>
        (await pod.ask<Ends>('call', { name, options, ...what })).CIRCUIT_OPEN === 1
      // The other pod makes no calls until then: a success between the failures would end the run of them.
      await vi.waitUntil(isOpenFor(failing, { fail: true }))
      if (isShared('limits')) await vi.waitUntil(isOpenFor(other, {}))
      else expect(await other.ask('call', { name, options })).toEqual({ passed: 1 })
    }
  })

  it('a job of one version is done by a pod of the other version with the same key format', async () => {
    for (const [name, adding, other] of [
      ['added-before', before, after],
      ['added-after', after, before],
    ] as const) {
      const what = { name, queue: name, options: { limits: [{ limit: 5, windowMs: '1h' }] } }
      await adding.ask('addJob', what)
      expect(await adding.ask('countJobs', what)).toBe(1)
      expect(await other.ask('countJobs', what)).toBe(isShared('jobs') ? 1 : 0)
      // With another format the job waits for a worker of its own version.
      const working = isShared('jobs') ? other : adding
      expect(await working.ask('doJob', what)).toEqual({ from: name })
    }
  })
})
