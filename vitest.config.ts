import { availableParallelism } from 'node:os'
import { fileURLToPath } from 'node:url'
import { defineConfig } from 'vitest/config'
import { BaseSequencer, type TestSpecification } from 'vitest/node'
import { BUILT_MODULES, builtModules } from './scripts/built-modules.mjs'
import { resolve } from './scripts/source-aliases.mjs'
import { testGroups } from './scripts/test-groups.mjs'

const pathOf = (path: string) => fileURLToPath(new URL(path, import.meta.url))
const isBuilt = process.env.SPILLWAY_TEST_BUILT !== undefined
const { quick, sockets, io, slow } = testGroups(pathOf('.'))
const isSlow = ({ moduleId }: TestSpecification) => slow.some((file) => moduleId.endsWith(file))
const isIo = ({ project }: TestSpecification) => project.name === 'io'

/** For tests that compute. The files that run in one thread share the loaded modules, which saves most of their start-up time. */
const COMPUTING = {
  isolate: false,
  setupFiles: [
    './scripts/require-assertions.mjs',
    './scripts/forbid-left-listeners.mjs',
    './scripts/forbid-io.mjs',
  ],
  maxWorkers: availableParallelism(),
  sequence: { groupOrder: 0 },
}
/** For tests that wait for servers and processes, so more of them run at once than there are cores. */
const WAITING = { maxWorkers: Math.ceil(availableParallelism() * 2.5), sequence: { groupOrder: 1 } }

/** Slow files first. Files of one project follow each other, because a worker is not used again after another one. */
class SlowFirst extends BaseSequencer {
  override async sort(specs: TestSpecification[]): Promise<TestSpecification[]> {
    const sorted = await super.sort(specs)
    const slowFirst = [...sorted.filter(isSlow), ...sorted.filter((spec) => !isSlow(spec))]
    return [...slowFirst.filter(isIo), ...slowFirst.filter((spec) => !isIo(spec))]
  }
}

export default defineConfig({
  // scripts/test.mjs builds first, so that what was built is as new as the sources.
  plugins: isBuilt ? [builtModules()] : [],
  resolve,
  test: {
    // Threads start faster than forks. Signals do not reach them: a test about SIGTERM or about what
    // keeps a process alive starts a process of its own.
    pool: 'threads',
    server: { deps: { external: isBuilt ? [BUILT_MODULES] : [] } },
    // These limits only end tests that hang. No test may depend on them.
    testTimeout: process.env.SPILLWAY_TEST_LONG === undefined ? 300_000 : 3_600_000,
    hookTimeout: 300_000,
    expect: { poll: { timeout: 60_000 } },
    sequence: { sequencer: SlowFirst },
    projects: [
      {
        extends: true,
        test: { name: 'quick', include: quick, ...COMPUTING },
      },
      {
        extends: true,
        test: {
          name: 'sockets',
          // Shared modules, as above. Loading the gateway and the client libraries takes 0.7 s of CPU time per file.
          isolate: false,
          include: sockets,
          setupFiles: [
            './scripts/require-assertions.mjs',
            './scripts/forbid-left-listeners.mjs',
            './scripts/patient-waits.mjs',
            './scripts/forbid-processes.mjs',
          ],
          ...WAITING,
        },
      },
      {
        extends: true,
        test: {
          name: 'io',
          // Shared modules, as above. Not threads, because starting a child process takes 2 ms of CPU time per 100 MB of its parent, and
          // all threads belong to one parent, which grew to 700 MB.
          pool: 'forks',
          isolate: false,
          include: io,
          setupFiles: [
            './scripts/require-assertions.mjs',
            './scripts/forbid-left-listeners.mjs',
            './scripts/patient-waits.mjs',
          ],
          ...WAITING,
        },
      },
    ],
  },
})
