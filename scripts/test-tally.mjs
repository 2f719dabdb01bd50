// A Vitest reporter that only counts, and hands the counts to the parent process (scripts/test.mjs).

/**
 * Counts single tests. An error outside a test (a file that does not load, a failing beforeAll, an unhandled error)
 * counts as one failure, so that no failing run reports "0 failed".
 */
export function tally(testModules, unhandledErrors) {
  const count = { passed: 0, failed: unhandledErrors.length, skipped: 0 }
  for (const testModule of testModules) {
    for (const test of testModule.children.allTests()) {
      const { state } = test.result()
      if (state === 'passed' || state === 'failed') count[state] += 1
      else count.skipped += 1
    }
    const groups = [testModule, ...testModule.children.allSuites()]
    count.failed += groups.filter((group) => group.errors().length > 0).length
  }
  return count
}

/** `12 passed, 0 failed`, and `, 3 skipped` only when there are any. */
export function closingLine({ passed, failed, skipped }) {
  const line = `${passed} passed, ${failed} failed`
  return skipped > 0 ? `${line}, ${skipped} skipped` : line
}

// Vitest loads a custom reporter through the default export.
// biome-ignore lint/style/noDefaultExport: see above
export default class TallyReporter {
  onTestRunEnd(testModules, unhandledErrors) {
    const count = tally(testModules, unhandledErrors)
    // Vitest exits soon after, so this waits until the message was sent.
    return new Promise(
      (sent) => process.send?.(count, undefined, undefined, () => sent()) ?? sent(),
    )
  }
}
