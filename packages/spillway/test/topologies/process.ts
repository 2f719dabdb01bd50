/** Whether a process with a store ends. */
import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { expect, it } from 'vitest'
import type { RedisStoreOptions } from '../../src/store/redis/redis-store.js'

const PACKAGE = fileURLToPath(new URL('../..', import.meta.url))
const WAYS = [
  ['has closed its store', 'await ready(); await store.close()'],
  ['has nothing else to do', 'await ready()'],
  ['closes its store before it is connected', 'await store.close()'],
] as const

export function claimEndings(connection: () => RedisStoreOptions): void {
  const cases = ['redis', 'ioredis'].flatMap((driver) =>
    WAYS.map(([when, body]) => [driver, when, body] as const),
  )
  it.each(cases)('process with %s ends when it %s', async (driver, _, body) => {
    const program = `
      import { redisStore } from './dist/store/redis/redis-store.js'
      const store = redisStore(JSON.parse(process.argv[1]))
      const ready = async () => {
        while (!store.ready) await new Promise((resolve) => setTimeout(resolve, 5))
        await store.limits.report({ guard: 'g', pod: 'p', requests: 1 })
        const alive = setInterval(() => {}, 1_000)
        await new Promise((onGap) => store.breakers.watch({ onView() {}, onGap }))
        clearInterval(alive)
      }
      ${body}
      console.log('done')`
    const options = JSON.stringify({ ...connection(), driver, commandTimeoutMs: 5_000 })
    const args = ['--input-type=module', '--eval', program, options]
    const { stdout } = await promisify(execFile)(process.execPath, args, {
      cwd: PACKAGE,
      timeout: 100_000,
    })
    expect(stdout.trim()).toBe('done')
  })
}
