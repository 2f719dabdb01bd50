// The files whose mutants are tested, and the quick tests that have to find them. Everything under packages/spillway/.

/**
 * `isInProcess`: the tests run in one process, see in-process-runner.mjs.
 * @type {{ files: string[], tests: string[], isInProcess?: boolean }[]}
 */
export const TARGETS = [
  {
    files: [
      'src/store/breaker/transitions.ts',
      'src/store/breaker/breaker-state.ts',
      'src/store/breaker/trip-conditions.ts',
      'src/store/breaker/tally.ts',
    ],
    tests: ['src/store/breaker/*.test.ts'],
    isInProcess: true,
  },
  {
    files: [
      'src/store/limits/transitions.ts',
      'src/store/limits/take-permits.ts',
      'src/store/limits/counting.ts',
      'src/store/limits/waiting-pods.ts',
      'src/store/limits/learned-limit.ts',
    ],
    tests: ['src/store/limits/*.test.ts'],
    isInProcess: true,
  },
  {
    files: [
      'src/store/levels/check-levels.ts',
      'src/store/levels/refund-levels.ts',
      'src/store/levels/sliding-window.ts',
    ],
    tests: ['src/store/levels/*.test.ts'],
    isInProcess: true,
  },
  {
    files: [
      'src/store/queue/add-jobs.ts',
      'src/store/queue/reserve-jobs.ts',
      'src/store/queue/finish-jobs.ts',
      'src/store/queue/maintenance.ts',
      'src/store/queue/queue-state.ts',
    ],
    tests: ['src/store/queue/*.test.ts', '../../scripts/mutation/queue-claims.ts'],
    isInProcess: true,
  },
  {
    files: [
      'src/shared/permit-queue/call-queue.ts',
      'src/shared/permit-queue/codel.ts',
      'src/shared/permit-queue/lane-queue.ts',
      'src/shared/permit-queue/queue-timeout.ts',
    ],
    tests: ['src/shared/permit-queue/*.test.ts', 'test/guard-order.test.ts'],
  },
  {
    files: [
      'src/shared/permit-queue/permit-dispatcher.ts',
      'src/shared/permit-queue/immediate-permits.ts',
      'src/shared/permit-queue/lane-block.ts',
    ],
    tests: [
      'src/shared/permit-queue/*.test.ts',
      'src/shared/rate-limiter/rate-limiter.test.ts',
      'test/guard-{order,slots,pools,wake-ups,close,regressions}.test.ts',
    ],
  },
  {
    files: [
      'src/shared/circuit-breaker/lane/lane-breaker.ts',
      'src/shared/circuit-breaker/lane/replica.ts',
      'src/shared/circuit-breaker/lane/ramp.ts',
      'src/shared/circuit-breaker/lane/reporter.ts',
    ],
    tests: ['src/shared/circuit-breaker/**/*.test.ts'],
  },
  {
    files: [
      'src/shared/rate-limiter/permit.ts',
      'src/shared/rate-limiter/feedback-reader.ts',
      'src/shared/rate-limiter/vendor-headers.ts',
      'src/shared/rate-limiter/settlement-sender.ts',
    ],
    tests: [
      'src/shared/rate-limiter/{rate-limiter,vendor-headers,settlement-sender,feedback-filter}.test.ts',
      'test/guard-retry-after.test.ts',
    ],
  },
  {
    files: [
      'src/local/retry/backoff.ts',
      'src/local/retry/retry-budget.ts',
      'src/local/retry/retry-decision.ts',
      'src/local/retry/retry-call.ts',
      'src/guard/stages/retry.ts',
    ],
    tests: [
      'src/local/retry/*.test.ts',
      'test/guard-{retry-conditions,retry-after,scenarios,pitfalls}.test.ts',
    ],
  },
  {
    files: [
      'src/core/time/deadline.ts',
      'src/core/time/time-budget.ts',
      'src/local/timeout/timed-call.ts',
    ],
    tests: ['src/core/time/{deadline,clock}.test.ts', 'src/local/timeout/*.test.ts'],
  },
  {
    files: [
      'src/guard/pipeline/pipeline.ts',
      'src/guard/pipeline/call.ts',
      'src/guard/pipeline/attempt.ts',
      'src/guard/pipeline/start-call.ts',
    ],
    tests: [
      'test/{custom-stages,guard-close,guard-order,guard-pitfalls,guard-scenarios,guard-regressions,guard-hostile,guard-shadow,guard-slots}.test.ts',
    ],
  },
]
