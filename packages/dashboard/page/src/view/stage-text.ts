/** Names of stages and meanings of codes. The order of the stages comes with the feed. */
import type { ErrorCode } from 'spillway'
import type { EndCode, Hello } from '../wire'

export type StageName = Hello['stages'][number]['stage']

const STAGE_TITLES: Readonly<Record<string, string>> = {
  shed: 'Load shedding',
  'user-limit': 'User limits',
  queue: 'Queue',
  breaker: 'Breaker',
  throttle: 'Throttle',
  'vendor-limit': 'Vendor limits',
  pace: 'Pace',
  concurrency: 'Concurrency',
  timeout: 'Timeout',
  call: 'The call',
  retry: 'Retry',
  hedge: 'Hedge',
  fallback: 'Fallback',
  /** The gateway refused the request itself. */
  request: 'Gateway',
}

/** The title of a built-in stage, or the name of a stage that the application added. */
export function titleOf(stage: StageName): string {
  return Object.hasOwn(STAGE_TITLES, stage) ? (STAGE_TITLES[stage] ?? stage) : stage
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
