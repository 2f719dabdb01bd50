// The files that are mutated, and the quick tests that have to detect the mutants. Paths start at packages/spillway/.

/** Quick tests of whole guards. */
const GUARD_TESTS = [
  'test/{custom-stages,refusal-table,retry-shared-errors,run-options}.test.ts',
  'test/guard-{breaker,close,fallback-values,headroom,hostile,lanes,nested-calls,no-timeout,order}.test.ts',
  'test/guard-{pitfalls,pools,regressions,retry-after,shadow,slots,tier-refusals,wake-ups}.test.ts',
]

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
    tests: [
      'src/store/limits/*.test.ts',
      'test/recorded-limits.test.ts',
      // Last, because a caller that is never served waits for ever in virtual time, until Stryker ends the mutant.
      '../../scripts/mutation/limit-claims.ts',
    ],
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
  // Files whose own unit tests are enough. One group, because starting takes longer than most of their tests.
  {
    files: [
      'src/core/time/deadline.ts',
      'src/core/time/time-budget.ts',
      'src/local/retry/backoff.ts',
      'src/local/retry/retry-budget.ts',
      'src/local/retry/retry-decision.ts',
      'src/shared/circuit-breaker/lane/ramp.ts',
      'src/shared/circuit-breaker/lane/replica.ts',
      'src/shared/circuit-breaker/lane/reporter.ts',
      'src/shared/permit-queue/codel.ts',
      'src/shared/permit-queue/lane-queue.ts',
      'src/shared/rate-limiter/feedback-reader.ts',
      'src/shared/rate-limiter/permit.ts',
      'src/shared/rate-limiter/settlement-sender.ts',
      'src/shared/rate-limiter/vendor-headers.ts',
    ],
    tests: [
      'src/core/time/deadline.test.ts',
      'src/local/retry/{backoff.property,retry-budget,retry-decision}.test.ts',
      'src/shared/circuit-breaker/lane/{ramp,replica,reporter}.test.ts',
      'src/shared/permit-queue/{codel,lane-queue}.test.ts',
      'src/shared/rate-limiter/{feedback-reader,permit,settlement-sender,vendor-headers}.test.ts',
    ],
  },
  {
    files: ['src/shared/permit-queue/call-queue.ts', 'src/shared/permit-queue/queue-timeout.ts'],
    // Without leaving-cost.test.ts, which counts operations.
    tests: ['src/shared/permit-queue/{call-queue,call-queue-state,queue-timeout}.test.ts'],
  },
  {
    files: [
      'src/shared/permit-queue/permit-dispatcher.ts',
      'src/shared/permit-queue/immediate-permits.ts',
      'src/shared/permit-queue/lane-block.ts',
    ],
    tests: [
      'src/shared/permit-queue/{permit-dispatcher,permit-requests,lane-block,immediate-permits}.test.ts',
      'src/shared/rate-limiter/rate-limiter.test.ts',
      'test/guard-{order,slots,pools,close,regressions}.test.ts',
    ],
  },
  {
    files: ['src/shared/circuit-breaker/lane/lane-breaker.ts'],
    tests: [
      'src/shared/circuit-breaker/lane/*.test.ts',
      'src/shared/circuit-breaker/{circuit-breaker,breaker-lanes}.test.ts',
      'test/{breaker-hang,guard-breaker,outage-breaker,memory-conformance}.test.ts',
    ],
  },
  {
    files: ['src/local/retry/retry-call.ts', 'src/guard/stages/retry.ts'],
    tests: [
      'src/guard/stages/retry.test.ts',
      'src/local/{regressions,retry/retry,retry/retry-call}.test.ts',
      ...GUARD_TESTS,
    ],
  },
  {
    files: ['src/local/timeout/timed-call.ts'],
    tests: ['src/local/regressions.test.ts', 'src/local/timeout/*.test.ts'],
  },
  {
    files: [
      'src/guard/pipeline/pipeline.ts',
      'src/guard/pipeline/call.ts',
      'src/guard/pipeline/attempt.ts',
      'src/guard/pipeline/start-call.ts',
    ],
    tests: [
      ...GUARD_TESTS,
      'test/guard-{attempts,pairs,piggyback,property,retry-conditions,scenarios}.test.ts',
      'test/{names,refusal-texts,run-options}.test.ts',
      // They read the log of decisions, which traces calls.
      '../dashboard/test/server/{decision-log,requests}.test.ts',
      'test/metrics/{estimates,metrics,spans}.test.ts',
      'test/overload/guard-{hedge,overload}.test.ts',
      'test/streams/{observed,probes}.test.ts',
      'src/guard/{fetch/failed-response,queue/permit-dispatcher,stream/{body-watch,watched-iterable}}.test.ts',
    ],
  },
]
