/** What the stages are called, and what each is for. The order comes with the feed. */
import type { Decision, Hello } from '../wire'

export type StageName = Hello['stages'][number]['stage']

const STAGE_WORDS: Readonly<Record<string, { title: string; purpose: string }>> = {
  shed: { title: 'Load shedding', purpose: 'refuses early while this pod is overloaded' },
  'user-limit': { title: 'User limits', purpose: 'fairness between users' },
  queue: { title: 'Queue', purpose: 'the only place where a call waits' },
  breaker: { title: 'Breaker', purpose: 'fails fast while the vendor is broken' },
  throttle: { title: 'Throttle', purpose: 'refuses a share while the vendor rejects calls' },
  'vendor-limit': { title: 'Vendor limits', purpose: 'keeps the vendor’s contract' },
  pace: { title: 'Pace', purpose: 'smooths bursts' },
  concurrency: { title: 'Concurrency', purpose: 'so many calls at once' },
  timeout: { title: 'Timeout', purpose: 'nobody waits for ever' },
  call: { title: 'The call', purpose: 'the vendor answers, or does not' },
  retry: { title: 'Retry', purpose: 'another attempt, if it can help' },
  hedge: { title: 'Hedge', purpose: 'a second attempt beside a slow one' },
  fallback: { title: 'Fallback', purpose: 'an answer in place of a failed call' },
}

/** The title of a built-in stage, or the name of a stage that the application added. */
export function titleOf(stage: StageName): string {
  return Object.hasOwn(STAGE_WORDS, stage) ? (STAGE_WORDS[stage]?.title ?? stage) : stage
}

const CODE_WORDS: Record<Decision['code'], string> = {
  OK: 'answered',
  DEGRADED: 'answered by a fallback',
  FAILED: 'the call failed',
  ABORTED: 'its caller left',
  SHED: 'this pod is overloaded',
  USER_LIMITED: 'the user’s limit is used up',
  QUEUE_FULL: 'no room left',
  QUEUE_TIMEOUT: 'waited too long',
  CIRCUIT_OPEN: 'the vendor is broken',
  THROTTLED: 'the vendor rejects too many calls',
  VENDOR_LIMITED: 'the vendor’s limit is used up',
  CALL_TIMEOUT: 'the vendor took too long',
  DEADLINE_EXCEEDED: 'the deadline passed',
  VENDOR_ERROR: 'the vendor answered with an error',
  STORE_UNAVAILABLE: 'Redis did not answer',
  STAGE_REFUSED: 'the application refused it',
  SHUTTING_DOWN: 'the pod is closing',
}

export const CODES = Object.keys(CODE_WORDS) as Decision['code'][]

export function wordsOfCode(code: string): string {
  return CODE_WORDS[code as Decision['code']] ?? code
}
