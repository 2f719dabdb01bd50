/** Names of stages and meanings of codes. The order of the stages comes with the feed. */
import type { ErrorCode } from 'spillway'
import type { EndCode, Hello } from '../wire'

export type StageName = Hello['stages'][number]['stage']

const STAGE_WORDS: Readonly<Record<string, { title: string; purpose: string }>> = {
  shed: { title: 'Load shedding', purpose: 'refuses early while this pod is overloaded' },
  'user-limit': { title: 'User limits', purpose: 'limits calls per user' },
  queue: { title: 'Queue', purpose: 'the only place where a call waits' },
  breaker: { title: 'Breaker', purpose: 'fails fast while the vendor is broken' },
  throttle: { title: 'Throttle', purpose: 'refuses a share while the vendor rejects calls' },
  'vendor-limit': { title: 'Vendor limits', purpose: 'keeps to the vendor’s limits' },
  pace: { title: 'Pace', purpose: 'smooths bursts' },
  concurrency: { title: 'Concurrency', purpose: 'limits calls at the same time' },
  timeout: { title: 'Timeout', purpose: 'limits how long a call may take' },
  call: { title: 'The call', purpose: 'the request to the vendor' },
  retry: { title: 'Retry', purpose: 'another attempt after a failure' },
  hedge: { title: 'Hedge', purpose: 'a second attempt beside a slow one' },
  fallback: { title: 'Fallback', purpose: 'an answer in place of a failed call' },
}

/** The title of a built-in stage, or the name of a stage that the application added. */
export function titleOf(stage: StageName): string {
  if (stage === 'request') return 'Gateway'
  return Object.hasOwn(STAGE_WORDS, stage) ? (STAGE_WORDS[stage]?.title ?? stage) : stage
}

const CODE_WORDS = {
  OK: 'answered',
  DEGRADED: 'answered by a fallback',
  FAILED: 'the call failed',
  REJECTED: 'the vendor rejected the request',
  ABORTED: 'the caller aborted the call',
  SHED: 'this pod is overloaded',
  USER_LIMITED: 'the user’s limit is used up',
  QUEUE_FULL: 'the queue is full',
  QUEUE_TIMEOUT: 'waited too long',
  CIRCUIT_OPEN: 'the circuit breaker is open',
  THROTTLED: 'the vendor rejects too many calls',
  VENDOR_LIMITED: 'the vendor’s limit is used up',
  CALL_TIMEOUT: 'the vendor took too long',
  DEADLINE_EXCEEDED: 'the deadline passed',
  VENDOR_ERROR: 'the vendor answered with an error',
  STORE_UNAVAILABLE: 'Redis did not answer',
  STAGE_REFUSED: 'the application refused it',
  SHUTTING_DOWN: 'the pod is shutting down',
} as const satisfies Record<ErrorCode | EndCode, string>

/** Codes by which a gateway refuses requests itself, of which the filter offers the usual ones. */
const REQUEST_CODES = [
  'UNKNOWN_KEY',
  'NOT_FOUND',
  'NO_ROUTE',
  'BODY_TOO_LARGE',
  'INVALID_BODY',
  'MALFORMED_REQUEST',
] as const

/** Why a fallback answered. */
const REASON_WORDS: Readonly<Record<string, string>> = {
  timeout: 'the call took too long',
  error: 'the call failed',
  'circuit-open': 'the circuit breaker is open',
  limited: 'a limit is used up',
  shed: 'the call was refused',
  pressure: 'the pod is busy',
}

export const CODES: readonly string[] = [...Object.keys(CODE_WORDS), ...REQUEST_CODES]

export function wordsOfCode(code: string): string {
  if (Object.hasOwn(CODE_WORDS, code)) return CODE_WORDS[code as keyof typeof CODE_WORDS]
  return REASON_WORDS[code] ?? 'the gateway refused the request'
}
