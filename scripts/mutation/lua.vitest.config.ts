// For lua-mutants.mjs: the differential tests, with mutated scripts.

import { fileURLToPath } from 'node:url'
import { defineConfig } from 'vitest/config'
import { resolve } from '../source-aliases.mjs'

const pathOf = (file: string) => fileURLToPath(new URL(file, import.meta.url))

export default defineConfig({
  root: pathOf('../..'),
  resolve: {
    alias: [
      ...resolve.alias,
      { find: /^.*\/scripts\.gen\.js$/, replacement: pathOf('./mutated-scripts.mjs') },
    ],
  },
  test: {
    include: ['packages/spillway/test/*-twins.test.ts'],
    pool: 'threads',
    maxWorkers: 1,
    setupFiles: [pathOf('../patient-waits.mjs'), pathOf('./fail-fast.mjs')],
    testTimeout: 600_000,
    hookTimeout: 600_000,
  },
})
