// npm run check -- walk: counts the library's files and functions that one `guard.run()` executes. The
// numbers say how much a newcomer has to read to follow a call. The guard has ten stages and the memory
// store. Coverage is V8's, over the compiled library, where each module is one source file.

import { readFileSync } from 'node:fs'
import { Session } from 'node:inspector'
import { join, relative } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { promisify } from 'node:util'
import { isMain, root } from './run-command.mjs'

const MAX_FILES = 40
const MAX_FUNCTIONS = 150
/**
 * The first calls set things up that later calls reuse, and a breaker reports each of the first hundred
 * successes to the store separately.
 */
const WARM_UP_CALLS = 200
/** A call now and then also does periodic work, such as sampling the load. The median call does not. */
const MEASURED_CALLS = 21

const DIST = join(root, 'packages/spillway/dist/')

const STAGES = {
  shed: { maxInFlight: 1_000 },
  userLimits: [{ per: 'user', limit: 1_000_000, windowMs: 60_000 }],
  queue: { size: 100, timeoutMs: 1_000 },
  breaker: { failureRate: 0.5, minimumCalls: 10 },
  limits: [{ limit: 1_000_000, windowMs: 60_000 }],
  pace: { limit: 1_000_000, windowMs: 1_000 },
  concurrency: { limit: 100 },
  timeout: { callMs: 1_000 },
  retry: { attempts: 2 },
}

if (isMain(import.meta.url)) {
  const { createSpillway } = await import(pathToFileURL(join(DIST, 'index.js')).href)
  const spillway = createSpillway()
  const files = await measureWalk(createCall(spillway), DIST)
  const fewer = await measureWalk(createCallWithoutThrottle(spillway), DIST)
  await spillway.close()

  if (process.argv.includes('--list')) process.stdout.write(`${listOf(files)}\n`)
  process.stdout.write(`${summaryOf(files)}\n`)
  process.stdout.write(`without throttle and timeoutMs: ${summaryOf(fewer)}\n`)
  const problems = walkProblems(files)
  for (const problem of problems) process.stdout.write(`${problem}\n`)
  process.exitCode = problems.length > 0 ? 1 : 0
}

/** One call through all ten stages and with a deadline, without a refusal and without a wait. */
function createCall(spillway) {
  const guard = spillway.guard('walk', { ...STAGES, throttle: {} })
  return () => guard.run(async () => 'done', { user: 'ada', timeoutMs: 500 })
}

/** The guard without throttle and deadline, for comparison with earlier figures. */
function createCallWithoutThrottle(spillway) {
  const guard = spillway.guard('walk-without-throttle', STAGES)
  return () => guard.run(async () => 'done', { user: 'ada' })
}

/**
 * The modules under `folder` that `call` executes, in the order in which it enters them, each with the
 * names of the functions that it executes there.
 *
 * @public The test imports this in a process of its own.
 */
export async function measureWalk(call, folder) {
  for (let index = 0; index < WARM_UP_CALLS; index++) await call()

  const session = new Session()
  session.connect()
  const post = promisify(session.post.bind(session))
  try {
    const walks = []
    await post('Profiler.enable')
    await post('Profiler.startPreciseCoverage', { callCount: true, detailed: false })
    for (let index = 0; index < MEASURED_CALLS; index++) {
      // Reading the coverage resets it.
      await post('Profiler.takePreciseCoverage')
      await call()
      const { result } = await post('Profiler.takePreciseCoverage')
      walks.push(executedIn(result, folder))
    }
    await post('Profiler.stopPreciseCoverage')
    walks.sort((one, other) => functionsIn(one) - functionsIn(other))
    return await inOrderOfExecution(walks[Math.floor(MEASURED_CALLS / 2)], call, post)
  } finally {
    session.disconnect()
  }
}

function executedIn(coverage, folder) {
  return coverage
    .filter(({ url }) => url.startsWith('file:') && fileURLToPath(url).startsWith(folder))
    .map(({ scriptId, url, functions }) => ({
      scriptId,
      path: fileURLToPath(url),
      file: relative(folder, fileURLToPath(url)).replace(/\.js$/, '.ts'),
      functions: functions.filter((each) => each.ranges[0].count > 0 && !isModule(each)),
    }))
    .filter(({ functions }) => functions.length > 0)
}

/** V8 reports the body of a module as a function without a name that begins with the file. */
function isModule({ functionName, ranges }) {
  return functionName === '' && ranges[0].startOffset === 0
}

/**
 * Coverage has no order. So one more call runs with a breakpoint at the start of each function, whose
 * condition notes the file and is false: the call never stops.
 */
async function inOrderOfExecution(files, call, post) {
  const entered = []
  globalThis.noteEnteredFile = (index) => void entered.push(index)
  await post('Debugger.enable')
  for (const [index, { scriptId, path, functions }] of files.entries()) {
    const text = readFileSync(path, 'utf8')
    for (const { ranges } of functions) {
      const before = text.slice(0, ranges[0].startOffset).split('\n')
      const location = {
        scriptId,
        lineNumber: before.length - 1,
        columnNumber: before.at(-1).length,
      }
      const condition = `noteEnteredFile(${index})`
      // Two functions can share their first statement: the breakpoint is then already set.
      await post('Debugger.setBreakpoint', { location, condition }).catch(() => {})
    }
  }
  await call()
  await post('Debugger.disable')
  delete globalThis.noteEnteredFile

  const order = [...new Set([...entered, ...files.keys()])]
  return order.map((index) => ({
    file: files[index].file,
    functions: files[index].functions.map(({ functionName }) => functionName || '(anonymous)'),
  }))
}

function functionsIn(files) {
  return files.reduce((sum, { functions }) => sum + functions.length, 0)
}

/** Names of the limits that `files` exceeds. */
export function walkProblems(files) {
  const problems = []
  if (files.length > MAX_FILES) {
    problems.push(`${files.length} files are more than the limit of ${MAX_FILES}`)
  }
  if (functionsIn(files) > MAX_FUNCTIONS) {
    problems.push(`${functionsIn(files)} functions are more than the limit of ${MAX_FUNCTIONS}`)
  }
  return problems
}

function summaryOf(files) {
  return `one call passes ${files.length} files and ${functionsIn(files)} functions`
}

function listOf(files) {
  return files
    .map(({ file, functions }) => `${String(functions.length).padStart(4)}  ${file}`)
    .join('\n')
}
