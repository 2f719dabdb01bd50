// Runs Vitest tests for Stryker in one process. Stryker's own runner starts a worker and loads Vitest for every mutant,
// which takes 0.2 s of CPU time. The tests of a transition take a few milliseconds. This runner supports tests that need
// only `describe`, `it`, hooks and `expect`. Every mutant gets new instances of all modules.

import { declareFactoryPlugin, PluginKind } from '@stryker-mutator/api/plugin'
import {
  DryRunStatus,
  determineHitLimitReached,
  TestStatus,
  toMutantRunResult,
} from '@stryker-mutator/api/test-runner'
import { startTests } from '@vitest/runner'
import { getTests } from '@vitest/runner/utils'
import { globSync } from 'tinyglobby'
import { createServer, createServerModuleRunner } from 'vite'
import './fail-fast.mjs'
import * as vitest from './vitest-in-process.mjs'

/** `vitest` itself is loaded once. */
const vitestPlugin = {
  name: 'vitest-in-process',
  enforce: 'pre',
  resolveId: (id) => (id === 'vitest' ? '\0vitest' : undefined),
  load: (id) =>
    id === '\0vitest'
      ? `export const { ${Object.keys(vitest).join(', ')} } = globalThis.spillwayVitest`
      : undefined,
}
globalThis.spillwayVitest = vitest

const NAMESPACE = '__stryker__'
const state = () => {
  globalThis[NAMESPACE] ??= {}
  return globalThis[NAMESPACE]
}

const CONFIG = {
  root: process.cwd(),
  // Stryker ends mutants that never end.
  testTimeout: 3_600_000,
  hookTimeout: 3_600_000,
  setupFiles: [],
  passWithNoTests: true,
  allowOnly: false,
  sequence: { seed: 1, hooks: 'stack', setupFiles: 'list', shuffle: false, concurrent: false },
  maxConcurrency: 1,
  retry: 0,
  tags: [],
  tagsFilter: undefined,
}

class InProcessRunner {
  #server
  #modules
  /** The order of the target's `tests`. The first failure ends a run, so quick tests come first. */
  #files

  capabilities() {
    return { reloadEnvironment: true }
  }

  async init() {
    // The sources of the sandbox, not of the repository.
    const { resolve } = await import(`${process.cwd()}/scripts/source-aliases.mjs`)
    this.#server = await createServer({
      configFile: false,
      logLevel: 'error',
      appType: 'custom',
      server: { middlewareMode: true, hmr: false, ws: false, watch: null },
      optimizeDeps: { noDiscovery: true },
      resolve,
      plugins: [vitestPlugin],
    })
    this.#modules = createServerModuleRunner(this.#server.environments.ssr, { hmr: false })
    const patterns = JSON.parse(process.env.SPILLWAY_MUTATION_TESTS)
    this.#files = patterns.flatMap((pattern) => globSync(pattern, { absolute: true }).sort())
  }

  async dryRun() {
    const { activeMutant: _, ...others } = state()
    globalThis[NAMESPACE] = { ...others, mutantCoverage: undefined }
    const result = await this.#run({ isDryRun: true })
    return { ...result, mutantCoverage: state().mutantCoverage }
  }

  async mutantRun({ testFilter, activeMutant, hitLimit }) {
    Object.assign(state(), { activeMutant: activeMutant.id, hitCount: 0, hitLimit })
    const result = await this.#run({ ids: testFilter })
    const limitReached = determineHitLimitReached(state().hitCount, hitLimit)
    state().activeMutant = undefined
    return toMutantRunResult(limitReached ?? result)
  }

  async dispose() {
    await this.#server?.close()
  }

  async #run({ ids, isDryRun = false }) {
    const chosen = ids && new Set(ids)
    const files = chosen
      ? this.#files.filter((file) => ids.some((id) => id.startsWith(`${file}#`)))
      : this.#files
    this.#modules.clearCache()
    const tests = []
    for (const file of files) {
      let failed = false
      const ran = await startTests([file], {
        config: { ...CONFIG },
        importFile: (path) => this.#modules.import(path),
        onBeforeRunTask(test) {
          if (failed || (chosen && !chosen.has(idOf(test)))) test.mode = 'skip'
          if (isDryRun) state().currentTestId = idOf(test)
        },
        onAfterRunTask(test) {
          failed ||= !isDryRun && test.result?.state === 'fail'
          state().currentTestId = undefined
        },
      })
      const errors = ran.flatMap(({ result }) => result?.errors ?? [])
      if (errors.length > 0 && isDryRun) {
        return {
          status: DryRunStatus.Error,
          errorMessage: errors.map(({ stack }) => stack).join('\n'),
        }
      }
      const results = getTests(ran).filter(({ result }) => result !== undefined)
      tests.push(...results.map(resultOf))
      if (errors.length > 0) tests.push(failureOf(file, errors[0].message))
      if (!isDryRun && tests.some(({ status }) => status === TestStatus.Failed)) break
    }
    return { status: DryRunStatus.Complete, tests }
  }
}

function idOf({ name, suite, file }) {
  const names = [name]
  for (let each = suite; each; each = each.suite) names.unshift(each.name)
  return `${file.filepath}#${names.join(' ').trim()}`
}

function resultOf(test) {
  const { state: outcome, duration = 0, errors } = test.result
  const base = {
    id: idOf(test),
    name: idOf(test).split('#').slice(1).join('#'),
    timeSpentMs: duration,
    fileName: test.file.filepath,
  }
  if (outcome === 'pass') return { ...base, status: TestStatus.Success }
  if (outcome === 'fail')
    return { ...base, status: TestStatus.Failed, failureMessage: errors?.[0]?.message ?? 'failed' }
  return { ...base, status: TestStatus.Skipped }
}

function failureOf(file, failureMessage) {
  return { id: file, name: file, timeSpentMs: 0, status: TestStatus.Failed, failureMessage }
}

function createRunner() {
  return new InProcessRunner()
}
createRunner.inject = []

export const strykerPlugins = [
  declareFactoryPlugin(PluginKind.TestRunner, 'in-process', createRunner),
]
