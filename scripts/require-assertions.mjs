// Setup file of all tests. A test without an assertion fails, because it makes no claim about a result. Concurrent tests are
// not checked, because Vitest counts their assertions for the test that started last. For the same reason its own option
// `requireAssertions` cannot be used.

import { afterEach, expect } from 'vitest'

afterEach(({ task }) => {
  if (task.concurrent || task.result?.state !== 'pass') return
  if (expect.getState().assertionCalls === 0) throw new Error('this test makes no assertion')
})
