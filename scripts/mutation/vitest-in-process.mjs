// The module that tests import as 'vitest' when in-process-runner.mjs runs them. It has Vitest's runner and matchers,
// without workers.

import {
  customMatchers,
  GLOBAL_EXPECT,
  getState,
  JestAsymmetricMatchers,
  JestChaiExpect,
  JestExtend,
  setState,
} from '@vitest/expect'
import { getCurrentSuite } from '@vitest/runner'
import * as chai from 'chai'

export {
  afterAll,
  afterEach,
  beforeAll,
  beforeEach,
  describe,
  it,
  onTestFailed,
  onTestFinished,
  test,
} from '@vitest/runner'

chai.use(JestExtend)
chai.use(JestChaiExpect)
chai.use(JestAsymmetricMatchers)

export function expect(value, message) {
  const { assertionCalls } = getState(expect)
  setState({ assertionCalls: assertionCalls + 1 }, expect)
  return chai.expect(value, message)
}
Object.assign(expect, chai.expect)
globalThis[GLOBAL_EXPECT] = expect
setState(
  { assertionCalls: 0, isExpectingAssertions: false, expectedAssertionsNumber: null },
  expect,
)
chai.expect.extend(expect, customMatchers)

/** Only tests with servers use it. */
export const vi = {}
export const TestRunner = { getCurrentSuite }
