// Setup file of the tests that use sockets and processes. Vitest's default of one second for a condition is too short
// on a busy machine. The limit only ends waits that would never end, so one generous value applies everywhere.

import { vi } from 'vitest'

const GIVE_UP_MS = 90_000
const { waitFor, waitUntil } = vi

const withTimeout = (options) => {
  const given = typeof options === 'number' ? { timeout: options } : options
  return { ...given, timeout: Math.max(GIVE_UP_MS, given?.timeout ?? 0) }
}

// Files that run in the same worker share `vi` and all globals. One that leaves a faked timer makes the next one hang.
const timer = Symbol.for('spillway.setTimeout')
globalThis[timer] ??= setTimeout
if (setTimeout !== globalThis[timer]) throw new Error('an earlier file left a faked setTimeout')

if (waitUntil.name !== 'waitUntilLonger') {
  vi.waitUntil = function waitUntilLonger(condition, options) {
    return waitUntil(condition, withTimeout(options))
  }
  vi.waitFor = function waitForLonger(condition, options) {
    return waitFor(condition, withTimeout(options))
  }
}
