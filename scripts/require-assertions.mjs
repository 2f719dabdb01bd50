// Setup file of all tests. A test without an assertion fails, because it makes no claim about a result. Vitest's own option
// `requireAssertions` cannot be used: it counts the assertions of concurrent tests for the test that started last.

import { afterEach, expect } from 'vitest'

afterEach(({ task }) => {
  if (task.concurrent || task.result?.state === 'fail') return
  if (expect.getState().assertionCalls === 0) throw new Error('this test makes no assertion')
})
