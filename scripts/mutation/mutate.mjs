// npm run mutate: mutation tests. Finds changes of the code that the quick tests do not detect. Writes the tables of
// docs/project/mutation-scores.md. Run it by hand: it takes minutes.

import { spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { npmCli } from '../platforms/npm-binary.mjs'
import { root } from '../run-command.mjs'
import { setupOrExit } from '../setup.mjs'
import { luaFiles, runLuaMutants } from './lua-mutants.mjs'
import { updateScores } from './scores-page.mjs'
import { TARGETS } from './targets.mjs'

const USAGE = `npm run mutate                        every file of scripts/mutation/targets.mjs
npm run mutate -- WORD…               only files whose path contains one of these words
npm run mutate -- --incremental …     only mutants whose file or tests changed since the last run with this option;
                                      writes no scores, because it does not notice changes of other files
npm run mutate -- lua [COUNT] [WORD…] COUNT mutants of each Lua script instead; default 3
`
const FOLDER = fileURLToPath(new URL('.', import.meta.url))
const CACHE = join(root, 'node_modules/.cache/mutation')
const PACKAGE = 'packages/spillway'

const { values: options, positionals: words } = readArguments()
if (options.help) {
  process.stdout.write(USAGE)
} else if (words[0] === 'lua') {
  if (options.incremental) exitWith(`--incremental is not an option of lua\n\n${USAGE}`)
  const isCount = (word) => /^[1-9]\d*$/.test(word)
  const [count, ...counts] = words.filter(isCount)
  if (counts.length > 0) exitWith(`lua takes one COUNT\n\n${USAGE}`)
  const files = choose(
    luaFiles(),
    words.slice(1).filter((word) => !isCount(word)),
  )
  await setupOrExit({ build: [], redis: true })
  await runLuaMutants(files, count && Number(count))
} else {
  const all = TARGETS.flatMap(({ files }) => files)
  const chosen = choose(all, words)
  await setupOrExit({ build: [] })
  installStryker()
  process.on('exit', endWorkers)
  mkdirSync(CACHE, { recursive: true })
  await mutate(chosen)
}

function readArguments() {
  try {
    return parseArgs({
      allowPositionals: true,
      options: {
        incremental: { type: 'boolean', default: false },
        help: { type: 'boolean', short: 'h' },
      },
    })
  } catch (error) {
    return exitWith(`${error.message}\n\n${USAGE}`)
  }
}

/** Files whose names contain one of the words; all files without words. A word that is in no name is an error. */
function choose(files, words) {
  const unknown = words.find((word) => !files.some((file) => file.includes(word)))
  if (unknown !== undefined)
    exitWith(`no file contains "${unknown}". There are:\n  ${files.join('\n  ')}\n`)
  return files.filter((file) => words.length === 0 || words.some((word) => file.includes(word)))
}

function exitWith(message) {
  process.stderr.write(message)
  process.exit(2)
}

async function mutate(chosen) {
  for (const [index, { files, ...target }] of TARGETS.entries()) {
    const ofTarget = files.filter((file) => chosen.includes(file))
    if (ofTarget.length === 0) continue
    const report = await runStryker(ofTarget, target, `group-${index}`)
    if (!options.incremental) updateScores(report)
  }
}

/** Stryker ends its workers by a message, which a mutant with an endless loop never reads. */
function endWorkers() {
  spawnSync('pkill', ['-KILL', '-P', String(process.pid)])
}

/** Returns Stryker's report, in the format of mutation-testing-elements. */
async function runStryker(files, { tests, isInProcess }, name) {
  const { Stryker } = await import('@stryker-mutator/core')
  const report = join(CACHE, `${name}.report.json`)
  process.env.SPILLWAY_MUTATION_TESTS = JSON.stringify(tests.map((test) => `${PACKAGE}/${test}`))
  const stryker = new Stryker({
    mutate: files.map((file) => `${PACKAGE}/${file}`),
    testRunner: isInProcess ? 'in-process' : 'vitest',
    plugins: [
      fileURLToPath(import.meta.resolve('@stryker-mutator/vitest-runner')),
      fileURLToPath(import.meta.resolve('./in-process-runner.mjs')),
    ],
    vitest: { configFile: 'scripts/mutation/vitest.config.ts', related: false },
    coverageAnalysis: 'perTest',
    // Each mutant of code that runs while a module loads would need every test.
    ignoreStatic: true,
    concurrency: Number(process.env.SPILLWAY_MUTATION_PROCESSES ?? 1),
    // Ends mutants with an endless loop. Stryker adds 1.5 times the duration of the tests, which take about 2 s in one process.
    // On an overloaded machine a slow mutant may count as detected: see the column "timed out".
    timeoutMS: isInProcess ? 4_000 : 40_000,
    incremental: options.incremental,
    incrementalFile: join(CACHE, `${name}.json`),
    ignorePatterns: ['**/dist', 'docs', 'deploy', '.github', 'scripts/mutation/node_modules'],
    tempDirName: '.stryker-tmp',
    reporters: ['clear-text', 'json', 'progress-append-only'],
    jsonReporter: { fileName: report },
    clearTextReporter: { logTests: false, reportTests: false },
    allowConsoleColors: false,
  })
  await stryker.runMutationTest()
  return JSON.parse(readFileSync(report, 'utf8'))
}

/** Stryker has a lockfile of its own here, so that `npm ci` of the repository stays fast. Vitest is the repository's. */
function installStryker() {
  const mark = join(FOLDER, 'node_modules/.installed')
  const lock = readFileSync(join(FOLDER, 'package-lock.json'), 'utf8')
  if (existsSync(mark) && readFileSync(mark, 'utf8') === lock) return
  const args = ['ci', '--workspaces=false', '--legacy-peer-deps', '--no-audit', '--no-fund']
  const { status } = spawnSync(process.execPath, [npmCli(), ...args], {
    cwd: FOLDER,
    stdio: 'inherit',
  })
  if (status !== 0) process.exit(status ?? 1)
  writeFileSync(mark, lock)
}
