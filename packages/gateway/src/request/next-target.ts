/** Which target receives a request after another one has failed: by the vendor's answer, or by the error. */
import { SpillwayError } from 'spillway'
import { judgeStatus } from 'spillway/http'
import { type ErrorKind, failureOf, kindOfStatus } from 'spillway/internal'
import { RequestError } from '../response/errors.js'
import { nextTarget, type Target } from '../routing/target.js'
import { neverConnected } from '../vendor/vendor-error.js'
import type { VendorResponse } from '../vendor/vendor-response.js'
import { canBeRepeated, type RoutedRequest } from './routed-request.js'

/** Refusals after which the next target is tried. All others would be the same there. */
const WORTH_ANOTHER: ReadonlySet<string> = new Set([
  'CIRCUIT_OPEN',
  'THROTTLED',
  'VENDOR_LIMITED',
  'QUEUE_FULL',
  'QUEUE_TIMEOUT',
  'CALL_TIMEOUT',
  'STORE_UNAVAILABLE',
])

/** The targets of a request, in the order in which they are tried, and the one that has failed. */
export interface FailedTarget {
  readonly routed: RoutedRequest
  readonly targets: readonly Target[]
  readonly target: Target
}

/** The next target after this error of a vendor, if any. */
export function targetAfterAnswer(
  { routed, targets, target }: FailedTarget,
  answer: VendorResponse,
): Target | undefined {
  const { status } = answer
  const next = (kind: ErrorKind) => nextTarget(targets, target, kind)
  const { kind } = failureOf(answer) ?? { kind: kindOfStatus(status) }
  // The gateway's keys are the cause, so every fallback may take over.
  if (answer.rejectsKey && canBeSentAgain(routed, true)) return next(kind) ?? next('server')
  const { retryable } = judgeStatus(status)
  if (kind === 'server' && !retryable) return undefined
  // The vendor refused the request before it did anything.
  const untouched = status < 500 && status !== 408
  if (!canBeSentAgain(routed, untouched)) return undefined
  return next(kind === 'bad-request' && retryable ? 'server' : kind)
}

/** The next target after a call that has thrown, if any. `attempts`: how often the failed target received the request. */
export function targetAfterError(
  { routed, targets, target }: FailedTarget,
  error: unknown,
  attempts: number,
): Target | undefined {
  if (error instanceof RequestError) return undefined
  if (error instanceof SpillwayError && !WORTH_ANOTHER.has(error.code)) return undefined
  if (!canBeSentAgain(routed, attempts === 0 || neverConnected(error))) return undefined
  const isLimited = error instanceof SpillwayError && error.code === 'VENDOR_LIMITED'
  return nextTarget(targets, target, isLimited ? 'rate-limited' : 'server')
}

/** `untouched`: the last target did not process the request. */
export function canBeSentAgain(routed: RoutedRequest, untouched: boolean): boolean {
  const { body } = routed.parsed
  if (body.kind === 'streamed' && body.progress.begun) return false
  return untouched || canBeRepeated(routed)
}
