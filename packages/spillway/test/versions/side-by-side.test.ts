// test-group: io

/**
 * Pods of the previous commit's build beside pods of the current one, on one Redis. If the format of
 * the stored values has changed, docs/upgrading.md has to say what happens instead.
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
const PAGE = pathOf('../../../../docs/upgrading.md')

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
/** What the keys of each version begin with: the prefix and the number of the format. */
let formats: string[][]

beforeAll(async () => {
  server = await startRedis()
  const folders = [previous?.folder ?? CURRENT, CURRENT]
  pods = []
  formats = []
  for (const folder of folders) {
    await server.send('FLUSHALL')
    pods.push(await startPod(folder, server.url))
    const options = { limits: [{ limit: 5, windowMs: '1h' }], breaker: { failureRate: 0.5 } }
    await (pods.at(-1) as Pod).ask('call', { name: 'probe', options })
    const keys = (await server.send('KEYS', '*')) as string[]
    formats.push([...new Set(keys.map((key) => key.split(':')[0] as string))].sort())
  }
  const [one, other] = await Promise.all(folders.map((folder) => startPod(folder, server.url)))
  pods = [pods[0], one, pods[1], other] as Pod[]
  ;[before, after] = [pods[0], pods[2]] as [Pod, Pod]
})
afterAll(async () => {
  for (const child of children) child.kill()
  await server?.stop()
})

const isSameFormat = () => String(formats[0]) === String(formats[1])

/** The claims below hold as long as the format is the same. */
function claim(name: string, check: () => Promise<void>): void {
  it(name, async () => {
    if (isSameFormat()) await check()
  })
}

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
  it('a changed key format has a row in docs/upgrading.md that says what happens', () => {
    const page = readFileSync(PAGE, 'utf8')
    for (const format of formats[1] as string[]) expect(page).toContain(`| \`${format}:\` |`)
  })

  for (const algorithm of ['sliding-window', 'token-bucket', 'fixed-window']) {
    claim(`a ${algorithm} limit stays exact across two versions`, async () => {
      const limits = [{ algorithm, limit: 40, windowMs: '30d' }]
      const guard = { name: `limit-${algorithm}`, options: { limits } }
      expect(await passedOf(guard, { alone: 5, together: 15 })).toBe(40)
    })
  }

  claim('a leaky-bucket limit grants one permit per beat across two versions', async () => {
    const limits = [{ algorithm: 'leaky-bucket', limit: 1, windowMs: '30d' }]
    const guard = { name: 'leaky', options: { limits } }
    expect(await passedOf(guard, { alone: 0, together: 5 })).toBe(1)
  })

  claim('a user limit stays exact across two versions', async () => {
    const userLimits = [{ per: 'user', limit: 12, windowMs: '1h' }]
    const guard = { name: 'users', user: 'ann', options: { userLimits } }
    expect(await passedOf(guard, { alone: 2, together: 6 })).toBe(12)
  })

  claim('a breaker that pods of one version opened is open for the other version', async () => {
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
      await vi.waitUntil(isOpenFor(other, {}))
    }
  })

  claim('a job that a pod of one version added is done by a pod of the other version', async () => {
    if (!(await before.ask<boolean>('hasJobs'))) return
    for (const [name, adding, working] of [
      ['added-before', before, after],
      ['added-after', after, before],
    ] as const) {
      const what = { name, queue: name, options: { limits: [{ limit: 5, windowMs: '1h' }] } }
      await adding.ask('addJob', what)
      expect(await working.ask('doJob', what)).toEqual({ from: name })
    }
  })
})
