import { expect, it } from 'vitest'
import { kindOf } from './failure-kind.js'

it.each([
  ['server', 'NOSCRIPT No matching script. Please use EVAL.'],
  ['server', 'ERR user_script:1: attempt to index nil'],
  ['server', 'OOM command not allowed'],
  ['server', 'MOVED 12 10.0.0.1:6379'],
  ['not-sent', 'The client is offline'],
  ['not-sent', 'The client is closed'],
  ['not-sent', 'The queue is full'],
  ['not-sent', "Stream isn't writeable and enableOfflineQueue options is false"],
  ['not-sent', "Cluster isn't ready and enableOfflineQueue options is false"],
  ['ambiguous', 'Socket closed unexpectedly'],
  ['ambiguous', 'Connection is closed.'],
  ['ambiguous', 'Reached the max retries per request limit (which is 0).'],
  ['ambiguous', 'read ECONNRESET'],
  ['ambiguous', 'Disconnects client'],
  ['ambiguous', ''],
])('kindOf classifies as %s a command that failed with "%s"', (kind, message) => {
  expect(kindOf(new Error(message))).toBe(kind)
})
