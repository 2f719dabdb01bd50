// Setup file of the tests that use sockets and processes. Vitest gives up on a condition after one
// second, which a busy machine exceeds. The limit only has to end a wait that would never end, so it
// is the same generous one everywhere.

import { vi } from 'vitest'

const GIVE_UP_MS = 90_000
const { waitFor, waitUntil } = vi

const patient = (options) => {
  const given = typeof options === 'number' ? { timeout: options } : options
  return { ...given, timeout: Math.max(GIVE_UP_MS, given?.timeout ?? 0) }
}

// Files that run in the same thread share `vi`.
if (waitUntil.name !== 'patientUntil') {
  vi.waitUntil = function patientUntil(condition, options) {
    return waitUntil(condition, patient(options))
  }
  vi.waitFor = function patientFor(condition, options) {
    return waitFor(condition, patient(options))
  }
}
