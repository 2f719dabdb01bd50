import { availableParallelism } from 'node:os'
import { fileURLToPath } from 'node:url'
import { defineConfig } from 'vitest/config'

const src = fileURLToPath(new URL('./packages/spillway/src', import.meta.url))

export default defineConfig({
  resolve: {
    // Tests see the sources, so a test run never depends on what happens to be built.
    alias: [
      { find: /^spillway$/, replacement: `${src}/index.ts` },
      {
        find: /^spillway\/(http|local|options|shared|testing)$/,
        replacement: `${src}/$1/index.ts`,
      },
      { find: /^spillway\/(express|fastify|hono)$/, replacement: `${src}/http/$1.ts` },
      { find: /^spillway\/metrics$/, replacement: `${src}/observe/index.ts` },
      {
        find: /^@spillway\/simulator$/,
        replacement: fileURLToPath(new URL('./packages/simulator/src/index.ts', import.meta.url)),
      },
      { find: /^spillway\/redis$/, replacement: `${src}/store/redis/index.ts` },
    ],
  },
  test: {
    include: [
      'packages/*/src/**/*.test.ts',
      'packages/*/test/**/*.test.ts',
      'examples/**/*.test.ts',
      'scripts/**/*.test.mjs',
    ],
    exclude: ['**/node_modules/**', '**/dist/**'],
    // Threads start faster than forks. Signals do not reach them: a test about SIGTERM or about what
    // keeps a process alive starts a process of its own.
    pool: 'threads',
    // Many tests wait for processes and servers rather than compute: more of them than cores.
    maxWorkers: Math.ceil(availableParallelism() * 1.5),
    testTimeout: 20_000,
    // Real processes and sockets on a machine that may be busy: what fails is tried once more, and the run says so.
    retry: 1,
  },
})
