// For Stryker: the quick tests that scripts/mutation/mutate.mjs chose, on the sources.

import { statSync } from 'node:fs'
import { defineConfig } from 'vitest/config'
import { BaseSequencer, type TestSpecification } from 'vitest/node'
import { resolve } from '../source-aliases.mjs'

/** The first failing test ends a run, and unit tests fail faster than tests of a whole guard. */
class SmallFilesFirst extends BaseSequencer {
  override async sort(specs: TestSpecification[]): Promise<TestSpecification[]> {
    const sizeOf = ({ moduleId }: TestSpecification) => statSync(moduleId).size
    return specs.sort((one, other) => sizeOf(one) - sizeOf(other))
  }
}

export default defineConfig({
  resolve,
  test: {
    include: JSON.parse(process.env.SPILLWAY_MUTATION_TESTS ?? '[]'),
    pool: 'threads',
    isolate: false,
    sequence: { sequencer: SmallFilesFirst },
    // A busy machine must not look like a test that noticed a mutant.
    testTimeout: 60_000,
  },
})
