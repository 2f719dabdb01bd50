// test-group: io

// Tests the import rules and the time rules: the tools run with the repository's configuration over a tiny tree.

import { cpSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { root, runNode, tools } from './run-command.mjs'

const SRC = 'packages/spillway/src'

/** Writes `files` (paths under src) into a new tree and removes it after the tests. */
function createTree(files) {
  const tree = mkdtempSync(join(tmpdir(), 'rules-'))
  afterAll(() => rmSync(tree, { recursive: true }))
  for (const config of ['biome.jsonc', '.gitignore', 'packages/spillway/package.json']) {
    cpSync(join(root, config), join(tree, config))
  }
  for (const peer of ['piscina', 'redis']) {
    write(tree, `node_modules/${peer}/package.json`, `{ "name": "${peer}", "main": "index.js" }`)
    write(tree, `node_modules/${peer}/index.js`, '')
  }
  for (const [path, text] of Object.entries(files)) write(tree, join(SRC, path), text)
  return tree
}

function write(tree, path, text) {
  mkdirSync(dirname(join(tree, path)), { recursive: true })
  writeFileSync(join(tree, path), text)
}

const use = (...paths) => paths.map((path) => `import '${path}'\n`).join('')

describe('import rules', () => {
  /** `file -> import: rule`, one line for each violation. */
  let violations = []

  beforeAll(async () => {
    const tree = createTree({
      'index.ts': use('./core/clock.js', './guard/guard.js', './testing/fake-clock.js'),
      'core/clock.ts': 'export const clock = 1',
      'core/reaches-up.ts': use('../local/breaker.js'),
      'core/reaches-up.test.ts': use('../local/breaker.js', '../testing/fake-clock.js', 'piscina'),
      'local/breaker.ts': `import type { clock } from '../core/clock.js'\n${use('node:events')}`,
      'local/reaches-over.ts': use('../shared/breaker.js', '../testing/fake-clock.js'),
      'local/chicken.ts': use('./egg.js'),
      'local/egg.ts': use('./chicken.js'),
      'local/bulkhead/worker-bulkhead.ts': use('piscina'),
      'local/other-pool.ts': use('piscina'),
      'local/typo.ts': use('./missing.js'),
      'store/store.ts': use('../core/clock.js'),
      'store/redis/redis-store.ts': use('../store.js'),
      'store/redis/drivers/node-redis.ts': use('redis'),
      'store/redis/other-client.ts': use('redis'),
      'local/bulkhead/worker-redis.ts': use('redis'),
      'shared/breaker.ts': use('../core/clock.js', '../store/store.js'),
      'shared/picks-a-store.ts': use('../store/redis/redis-store.js'),
      'guard/guard.ts': use('../local/breaker.js', '../store/redis/redis-store.js'),
      'http/middleware.ts': use('../guard/guard.js'),
      'http/reaches-over.ts': use('../observe/sink.js'),
      'observe/sink.ts': use('../core/clock.js'),
      'testing/fake-clock.ts': use('../guard/guard.js', '../http/middleware.js'),
      'misc/helpers.ts': use('../core/clock.js'),
      '../../gateway/src/gateway.ts': use('../../spillway/src/testing/fake-clock.js'),
    })
    const config = join(root, '.dependency-cruiser.cjs')
    const args = [
      tools.depcruise,
      '--config',
      config,
      '--output-type',
      'json',
      SRC,
      'packages/gateway/src',
    ]
    const { output } = await runNode(args, { cwd: tree })
    violations = JSON.parse(output).summary.violations.map(({ from, to, rule }) =>
      `${from} -> ${to}: ${rule.name}`.replaceAll(`${SRC}/`, ''),
    )
  })

  it.each([
    ['core importing a mechanism', 'core/reaches-up.ts -> local/breaker.ts: core-imports'],
    ['local importing shared', 'local/reaches-over.ts -> shared/breaker.ts: local-imports'],
    ['a cycle', 'local/chicken.ts -> local/egg.ts: no-cycles'],
    [
      'shared choosing a store',
      'shared/picks-a-store.ts -> store/redis/redis-store.ts: shared-imports',
    ],
    ['http importing observe', 'http/reaches-over.ts -> observe/sink.ts: http-imports'],
    [
      'production code importing testing',
      'index.ts -> testing/fake-clock.ts: testing-is-for-tests',
    ],
    [
      'the gateway importing testing',
      'packages/gateway/src/gateway.ts -> testing/fake-clock.ts: testing-stays-out-of-production',
    ],
    [
      'a package outside the worker bulkhead',
      'local/other-pool.ts -> node_modules/piscina/index.js: no-unshipped-packages',
    ],
    [
      'a client outside its adapter',
      'store/redis/other-client.ts -> node_modules/redis/index.js: no-unshipped-packages',
    ],
    [
      'one peer in the file of another',
      'local/bulkhead/worker-redis.ts -> node_modules/redis/index.js: piscina-only',
    ],
    ['an import that cannot be resolved', 'local/typo.ts -> ./missing.js: resolvable'],
    ['a folder without a rule', 'misc/helpers.ts -> core/clock.ts: folder-without-a-row'],
  ])('import rules reject %s', (_, violation) => {
    expect(violations).toContain(violation)
  })

  it('import rules accept everything the table allows', () => {
    const innocent = [
      'core/clock.ts',
      'core/reaches-up.test.ts',
      'local/breaker.ts',
      'local/bulkhead/worker-bulkhead.ts',
      'store/store.ts',
      'store/redis/redis-store.ts',
      'store/redis/drivers/node-redis.ts',
      'shared/breaker.ts',
      'guard/guard.ts',
      'http/middleware.ts',
      'observe/sink.ts',
      'testing/fake-clock.ts',
    ]
    const accused = violations.map((violation) => violation.split(' ->')[0])
    expect(accused.filter((file) => innocent.includes(file))).toEqual([])
  })
})

describe('time rules', () => {
  const forbidden = {
    'set-timeout': 'setTimeout(() => {}, 1)',
    'set-interval': 'setInterval(() => {}, 1)',
    'set-immediate': 'setImmediate(() => {})',
    'global-set-timeout': 'globalThis.setTimeout(() => {}, 1)',
    'date-now': 'export const at = Date.now()',
    'date-now-taken-apart': 'export const { now } = Date',
    'performance-now': 'export const at = performance.now()',
    'math-random': 'export const dice = Math.random()',
    'timers-module': "export { setTimeout } from 'node:timers/promises'",
  }
  const names = Object.keys(forbidden)
  let refused = []

  beforeAll(async () => {
    const files = {}
    for (const folder of ['local', 'core', 'testing']) {
      for (const name of names) files[`${folder}/${name}.ts`] = forbidden[name]
    }
    for (const name of names) files[`local/${name}.test.ts`] = forbidden[name]
    const rules = ['noRestrictedGlobals', 'noRestrictedImports'].map((rule) => `style/${rule}`)
    const only = [...rules, 'nursery/noJsRestrictedProperties'].map((rule) => `--only=${rule}`)
    const args = [tools.biome, 'lint', '--reporter=github', '--max-diagnostics=none', ...only, SRC]
    const { output } = await runNode(args, { cwd: createTree(files) })
    refused = [...output.matchAll(/src\/([\w/.-]+)/g)].map(([, file]) => file)
  })

  it.each(names)('time rules reject %s outside core/ and testing/', (name) => {
    expect(refused).toContain(`local/${name}.ts`)
  })

  it('time rules leave core/, testing/ and tests alone', () => {
    expect(refused.filter((file) => !/^local\/[\w-]+\.ts$/.test(file))).toEqual([])
  })
})
