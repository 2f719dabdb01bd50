/** What the stages are called, and what each is for. The order comes with the feed. */
import type { Decision, Hello } from '../wire'

export type StageName = Hello['stages'][number]['stage']

export const STAGE_WORDS: Record<StageName, { title: string; purpose: string }> = {
  shed: { title: 'Load shedding', purpose: 'refuses early while this pod is overloaded' },
  'user-limit': { title: 'User limits', purpose: 'fairness between users' },
  room: { title: 'Waiting room', purpose: 'the only place where a call waits' },
  breaker: { title: 'Breaker', purpose: 'fails fast while the vendor is broken' },
  'vendor-limit': { title: 'Vendor limits', purpose: 'keeps the vendor’s contract' },
  pace: { title: 'Pace', purpose: 'smooths bursts' },
  concurrency: { title: 'Concurrency', purpose: 'so many calls at once' },
  timeout: { title: 'Timeout', purpose: 'nobody waits for ever' },
  call: { title: 'The call', purpose: 'the vendor answers, or does not' },
  retry: { title: 'Retry', purpose: 'another attempt, if it can help' },
}

const CODE_WORDS: Record<Decision['code'], string> = {
  OK: 'answered',
  FAILED: 'the call failed',
  LEFT: 'its caller left',
  SHED: 'this pod is overloaded',
  USER_LIMITED: 'the user’s limit is used up',
  QUEUE_FULL: 'no room left',
  QUEUE_TIMEOUT: 'waited too long',
  CIRCUIT_OPEN: 'the vendor is broken',
  VENDOR_LIMITED: 'the vendor’s limit is used up',
  CALL_TIMEOUT: 'the vendor took too long',
  DEADLINE_EXCEEDED: 'the deadline passed',
  VENDOR_ERROR: 'the vendor answered with an error',
  STORE_UNAVAILABLE: 'Redis did not answer',
  CLOSED: 'the pod is closing',
}

export const CODES = Object.keys(CODE_WORDS) as Decision['code'][]

export function wordsOfCode(code: string): string {
  return CODE_WORDS[code as Decision['code']] ?? code
}
