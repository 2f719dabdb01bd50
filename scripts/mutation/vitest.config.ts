// For Stryker: the quick tests that scripts/mutation/mutate.mjs chose, on the sources.

import { defineConfig } from 'vitest/config'
import { resolve } from '../source-aliases.mjs'

export default defineConfig({
  resolve,
  test: {
    include: JSON.parse(process.env.SPILLWAY_MUTATION_TESTS ?? '[]'),
    pool: 'threads',
    isolate: false,
    // A busy machine must not look like a test that noticed a mutant.
    testTimeout: 60_000,
  },
})
