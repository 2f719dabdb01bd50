// npm run mutate: mutation tests. Finds changes of the code that the quick tests do not detect. See
// docs/project/mutation-scores.md, which this script writes. Run it by hand: it takes minutes.
//
//   npm run mutate                    every file of targets.mjs
//   npm run mutate -- retry deadline  only files whose path contains one of these words
//   npm run mutate -- lua             the Lua scripts instead, see lua-mutants.mjs

import { spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { npmCli } from '../platforms/npm-binary.mjs'
import { root } from '../run-command.mjs'
import { setupOrExit } from '../setup.mjs'
import { runLuaMutants } from './lua-mutants.mjs'
import { updateScores } from './scores-page.mjs'
import { TARGETS } from './targets.mjs'

const FOLDER = fileURLToPath(new URL('.', import.meta.url))
const CACHE = join(root, 'node_modules/.cache/mutation')
const PACKAGE = 'packages/spillway'

const words = process.argv.slice(2)
mkdirSync(CACHE, { recursive: true })
if (words[0] === 'lua') {
  await setupOrExit({ build: [], redis: true })
  await runLuaMutants(words.slice(1))
} else {
  await setupOrExit({ build: [] })
  installStryker()
  await mutate(words)
}

async function mutate(words) {
  const isChosen = (file) => words.length === 0 || words.some((word) => file.includes(word))
  for (const [index, { files, ...target }] of TARGETS.entries()) {
    const chosen = files.filter(isChosen)
    if (chosen.length > 0) updateScores(await runStryker(chosen, target, `group-${index}`))
  }
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
    // Mutants of what runs while a module loads would each need every test.
    ignoreStatic: true,
    concurrency: Number(process.env.SPILLWAY_MUTATION_PROCESSES ?? 1),
    // A mutant that never ends. Generous, because the machine may be busy.
    timeoutMS: isInProcess ? 20_000 : 40_000,
    incremental: true,
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
