// npm run mutate -- lua: mutants of the Lua scripts, which the differential tests have to notice. They feed the same
// random histories to the scripts and to the TypeScript transitions. Each mutant runs against one server.

import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { createVitest } from 'vitest/node'
import { assemble, keyOf } from '../lua-source.mjs'
import { root } from '../run-command.mjs'
import { chooseSome, mutantsOf } from './lua-operators.mjs'
import { updateTable } from './scores-page.mjs'

const LUA = join(root, 'packages/spillway/src/store/redis/lua')
const CACHE = join(root, 'node_modules/.cache/mutation')
const SCRIPTS_FILE = join(CACHE, 'scripts.json')
const SEED = 1

/** The differential tests and the scripts that they run. `check-access` has no twin. */
const TWINS = {
  'breaker-twins': [...['command-breaker', 'report-outcomes', 'sync-breakers', 'take-probes']],
  'limit-twins': [
    ...['take-permits', 'settle-permits', 'apply-feedback', 'book-spent', 'change-limits'],
    ...['pause-lane', 'read-limits', 'check-levels', 'refund-levels', 'report-requests'],
  ],
  'piggyback-twins': ['take-and-report'],
  'pod-twins': ['beat-pod', 'leave-pod', 'list-pods', 'pulse-guard', 'send-pod-command'],
  'queue-twins': [
    ...['add-jobs', 'reserve-jobs', 'finish-jobs', 'extend-jobs', 'command-queue'],
    ...['read-queue', 'read-job-status', 'repair-queue'],
  ],
}
const NAMES = Object.values(TWINS).flat()

/** Runs `count` mutants of each of these files. */
export async function runLuaMutants(files, count = 3) {
  const originals = assembleAll(readLua)
  const vitest = await startVitest()
  try {
    for (const file of files) {
      const row = { name: `${file}.lua`, killed: 0, total: 0 }
      for (const mutant of chooseSome(mutantsOf(readLua(file)), count, SEED)) {
        const mutated = assembleAll((name) => (name === file ? mutant.text : readLua(name)))
        const changed = NAMES.filter((name) => mutated[name] !== originals[name])
        if (changed.length === 0) continue
        const failure = await noticed(vitest, { originals, mutated, changed })
        row.total += 1
        if (failure) row.killed += 1
        const { operator, line, after } = mutant
        const mark = failure ? 'killed  ' : 'SURVIVED'
        process.stdout.write(`${mark} ${file}.lua:${line} ${operator}: ${after.trim()}\n`)
        // Reveals failures that the change does not explain.
        if (failure) process.stdout.write(`         ${failure}\n`)
      }
      if (row.total > 0) updateTable('lua', [row])
    }
  } finally {
    await vitest.close()
    // Vitest sets the exit code when a test fails, which kills a mutant.
    process.exitCode = 0
  }
}

/** Differential tests that passed without a mutant. */
const trusted = new Set()

/** Returns why a differential test that uses a changed script fails; undefined if all of them pass. */
async function noticed(vitest, { originals, mutated, changed }) {
  for (const [twin, names] of Object.entries(TWINS)) {
    if (!names.some((name) => changed.includes(name))) continue
    if (!trusted.has(twin)) {
      const failure = await failureOf(vitest, twin, originals)
      if (failure) throw new Error(`${twin} fails without a mutant: ${failure}`)
    }
    trusted.add(twin)
    const failure = await failureOf(vitest, twin, mutated)
    if (failure) return failure
  }
  return undefined
}

/** Runs that may fail for different reasons. */
const MOST_RUNS = 6

/**
 * Returns why a differential test fails; undefined if it passes. Keys expire in real time, so on a busy machine a history
 * may lose its state. The histories are always the same ones, so one failure does not count. A failure that occurs twice
 * does, and so do `MOST_RUNS` different ones.
 */
async function failureOf(vitest, twin, scripts) {
  const reasons = new Set()
  while (reasons.size < MOST_RUNS) {
    const [error] = await run(vitest, twin, scripts)
    if (!error) return undefined
    const reason = reasonOf(error)
    if (reasons.has(reason)) return reason
    reasons.add(reason)
  }
  return `different failures: ${[...reasons].join('; ')}`
}

/** Which history failed and how. Numbers may depend on the real time. */
function reasonOf({ message, cause }) {
  const firstLine = (text = '') => text.split('\n')[0].slice(0, 160)
  return `${firstLine(message)}: ${firstLine(cause?.message).replaceAll(/\d+/g, '0')}`
}

/** Returns the errors of a differential test. */
async function run(vitest, twin, scripts) {
  const byKey = Object.entries(scripts).map(([name, text]) => [keyOf(name), text])
  writeFileSync(SCRIPTS_FILE, JSON.stringify(Object.fromEntries(byKey)))
  vitest.state.filesMap.clear()
  const { testModules, unhandledErrors } = await vitest.start([`spillway/test/${twin}`])
  const [unhandled] = unhandledErrors
  // For example a worker that did not start in time.
  if (unhandled || testModules.length === 0)
    throw new Error(`${twin} did not run`, { cause: unhandled })
  const failed = testModules.flatMap((each) => [...each.children.allTests('failed')])
  return [
    ...testModules.flatMap((each) => each.errors()),
    ...failed.flatMap((each) => each.result().errors),
  ]
}

async function startVitest() {
  mkdirSync(CACHE, { recursive: true })
  process.env.SPILLWAY_MUTATED_SCRIPTS = SCRIPTS_FILE
  process.env.SPILLWAY_TEST_DRIVER = 'node-redis'
  return createVitest('test', {
    config: join(root, 'scripts/mutation/lua.vitest.config.ts'),
    watch: false,
    bail: 1,
    reporters: [{}],
  })
}

/** The texts of all scripts by name; `read` returns the text of a Lua file. */
function assembleAll(read) {
  return Object.fromEntries(
    readdirSync(LUA)
      .filter((file) => file.endsWith('.lua'))
      .map((file) => file.slice(0, -'.lua'.length))
      .map((name) => [name, assemble(name, read)]),
  )
}

/** Every Lua file that a differential test runs. */
export function luaFiles() {
  const includes = readdirSync(join(LUA, 'include')).map((file) => `include/${file}`)
  return [...includes.map((file) => file.slice(0, -'.lua'.length)), ...NAMES]
}

function readLua(name) {
  const file = join(LUA, `${name}.lua`)
  return existsSync(file) ? readFileSync(file, 'utf8') : undefined
}
