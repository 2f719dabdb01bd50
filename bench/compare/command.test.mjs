// test-group: io
import { spawnSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { describe, expect, it } from 'vitest'

const pathOf = (path) => fileURLToPath(new URL(path, import.meta.url))

function runNode(args, env) {
  const options = { cwd: pathOf('.'), encoding: 'utf8', env: { ...process.env, ...env } }
  return spawnSync(process.execPath, args, options)
}

describe('npm run compare', () => {
  it.each([
    [['--nope'], "Unknown option '--nope'"],
    [['--only', 'nope'], 'unknown scenario "nope"; there are: limit-replicas, '],
    [['nope'], "Unexpected argument 'nope'"],
  ])('the comparison refuses %j with one line and a pointer to --help', (args, message) => {
    const { status, stderr } = runNode(['run.mjs', ...args])
    expect(status).toBe(2)
    expect(stderr.startsWith(message)).toBe(true)
    expect(stderr.split('\n').slice(1)).toEqual(['For the options: npm run compare -- --help', ''])
  })

  it('the comparison fails with the output of a Redis that ends at its start', () => {
    const code = `import { startRedis } from './parts/redis.mjs'; await startRedis()`
    // Node refuses the options of Redis and ends.
    const env = { SPILLWAY_REDIS_SERVER: process.execPath }
    const { status, stderr } = runNode(['--input-type=module', '--eval', code], env)
    expect(status).toBe(1)
    expect(stderr).toContain('redis-server ended before it was ready')
  })
})
