// test-group: io, slow

/** A real process with far more work than it can do. `npm run e2e -- shed` is a longer version. */
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { Agent, get } from 'node:http'
import { fileURLToPath } from 'node:url'
import { expect, it, onTestFinished } from 'vitest'

const FIXTURE = fileURLToPath(new URL('../fixtures/busy-pod.mjs', import.meta.url))
const CALLERS = 100
/** The load lasts at least this long, and until the health was checked often enough. */
const LOAD_MS = 1_500
const LEAST_PROBES = 3
const PROBE_EVERY_MS = 20

const pause = (ms: number) => new Promise<void>((resolve) => setTimeout(resolve, ms))

function ask(url: string, agent: Agent): Promise<number> {
  return new Promise((resolve, reject) => {
    get(url, { agent }, (response) => {
      response.resume()
      response.once('end', () => resolve(response.statusCode ?? 0))
    }).once('error', reject)
  })
}

/** A hundred callers that never stop, and one that checks the health. */
async function overload(kind: 'naive' | 'protected') {
  const pod = fork(FIXTURE, [kind])
  const agent = new Agent({ keepAlive: true })
  const probing = new Agent({ keepAlive: true })
  onTestFinished(() => {
    pod.kill('SIGKILL')
    agent.destroy()
    probing.destroy()
  })
  const [port] = (await once(pod, 'message')) as [number]
  const url = `http://127.0.0.1:${port}`
  const endMs = performance.now() + LOAD_MS
  let isOver = false
  const statuses: Record<number, number> = {}
  const caller = async () => {
    while (!isOver) {
      const status = await ask(url, agent)
      statuses[status] = (statuses[status] ?? 0) + 1
      if (status === 503) await pause(30)
    }
  }
  const health: { status: number; workedMeanwhile: number }[] = []
  const prober = async () => {
    // Before the first answer a health check could be ahead of all calls.
    while (statuses[200] === undefined) await pause(1)
    while (performance.now() < endMs || health.length < LEAST_PROBES) {
      const workedBefore = statuses[200] ?? 0
      const status = await ask(`${url}/health/live`, probing)
      health.push({ status, workedMeanwhile: (statuses[200] ?? 0) - workedBefore })
      await pause(PROBE_EVERY_MS)
    }
    isOver = true
  }
  await Promise.all([prober(), ...Array.from({ length: CALLERS }, caller)])
  // It takes work again once the load is over.
  while ((await ask(url, agent)) !== 200) await pause(20)
  const sorted = health.map(({ workedMeanwhile }) => workedMeanwhile).sort((a, b) => a - b)
  return {
    statuses,
    healthy: health.every(({ status }) => status === 200),
    workedMeanwhile: sorted[sorted.length >> 1] as number,
  }
}

it('a pod with a load shedder does less work before it answers a health check than one without', async () => {
  const naive = await overload('naive')
  const pod = await overload('protected')
  expect(naive.statuses[503]).toBeUndefined()
  expect(pod.statuses[503]).toBeGreaterThan(0)
  expect(pod.statuses[200]).toBeGreaterThan(0)
  expect(pod.healthy).toBe(true)
  // Counted in calls, which a busy machine does not change; `npm run e2e -- shed` measures times.
  expect(pod.workedMeanwhile).toBeLessThan(naive.workedMeanwhile / 2)
})
