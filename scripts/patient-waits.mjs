// Setup file of the tests that use sockets and processes. Vitest's default of one second for a condition is too short
// on a busy machine. The limit only ends waits that would never end, so one generous value applies everywhere.

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
