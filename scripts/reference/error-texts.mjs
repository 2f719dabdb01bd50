// Cause, check and remedy of each error code. The codes themselves are read from the library.

export const ERROR_TEXTS = {
  SHED: {
    cause:
      'The pod is overloaded and refuses the least important calls early, or a queued call was dropped because the queue stays long.',
    check:
      '`details.reason` and `details.option` name the rule; `details.signal`, `value` and `threshold` the measurement. The dashboard shows the pressure of each signal.',
    fix: 'Add pods, raise the threshold of that option, or give important calls a higher `priority`. If `stage` is `queue`, raise `queue.targetMs` or what the calls wait for.',
    page: 'how-to/mechanisms/load-shedding.md',
  },
  USER_LIMITED: {
    cause: 'The limit of a user, tier, address or endpoint is used up.',
    check: '`details.level` names the level, `details.remaining` what is left.',
    fix: 'Retry after `retryAfterMs`. Raise `limit` of that level, or give the tier its own limit.',
    page: 'how-to/user-limits.md',
  },
  QUEUE_FULL: {
    cause:
      'As many calls wait as `queue.size` allows, or a call of higher priority evicted this one. Without `queue`: all slots are in use, or the pace is used up.',
    check:
      '`details.waiting`, `active` and `limit` show whether slots or something else is short. `details.why` is `displaced` for an evicted call.',
    fix: 'Raise `concurrency.limit` or `queue.size`, or add pods. If calls wait for a vendor limit, send less or raise the limit.',
    page: 'concepts/priorities-and-deadlines.md',
  },
  QUEUE_TIMEOUT: {
    cause: 'The call waited for `queue.timeoutMs` and could not start.',
    check:
      '`details.waitedMs`, `waiting`, `active` and `limit`; the metric `spillway_queue_wait_seconds`.',
    fix: 'Raise `queue.timeoutMs` if callers are patient. Otherwise raise what the calls wait for: slots, pace or vendor limits.',
    page: 'concepts/priorities-and-deadlines.md',
  },
  CIRCUIT_OPEN: {
    cause:
      'Too many calls of the lane failed or were slow, so the breaker is open on all pods; or it is isolated by an operator, or all probes are in use. In the gateway: all keys of the vendor are quarantined.',
    check:
      '`details.cause`, `failures` and `calls` say why it opened, `details.state` its state. `spillway status` shows all breakers.',
    fix: 'Fix the downstream or wait: probes close the breaker. If healthy calls count as failures, adjust `classify` or `failureRate`. `spillway breaker close` closes it by hand.',
    page: 'how-to/mechanisms/circuit-breaker.md',
  },
  THROTTLED: {
    cause: 'The downstream rejected many of the last calls, so this pod sends fewer.',
    check:
      '`details.requests` and `accepts` of the window; the errors that the downstream answers with.',
    fix: 'Remove the reason for the rejections. Raise `throttle.k` to send more.',
    page: 'how-to/mechanisms/throttle.md',
  },
  VENDOR_LIMITED: {
    cause:
      "The vendor's limits, or a pause that it asked for, require a longer wait than the call has time for.",
    check:
      '`details.unit`, `limit`, `requested` and `left` name the limit; `details.paused` is true during a pause; `details.byOutageRule` if the store is unreachable and the pod used its share.',
    fix: 'Give the call more time or a `queue`. Raise `limits` if the contract allows it. Use a smaller estimate of tokens, another key or a fallback.',
    page: 'how-to/mechanisms/shared-limits.md',
  },
  CALL_TIMEOUT: {
    cause: 'An attempt took longer than one of its time limits.',
    check:
      '`details.kind` names the limit (`connect`, `call`, `firstByte`, `idle`, `unread`), `details.limitMs` its value.',
    fix: 'Raise that option of `timeout`. Request long answers as a stream, and limit `firstByteMs` and `idleMs` instead of `callMs`.',
    page: 'how-to/mechanisms/timeout.md',
  },
  DEADLINE_EXCEEDED: {
    cause:
      'The time of the request is over: `timeoutMs` of the call, or the deadline that the request came with.',
    check:
      '`stage` says where: in the queue, before a retry, or during the call (`details.called`).',
    fix: 'Give the request more time, or divide it with a time budget. A long wait in the queue has the causes of `QUEUE_TIMEOUT`.',
    page: 'how-to/deadlines.md',
  },
  VENDOR_ERROR: {
    cause:
      'The vendor could not be reached, or broke off its answer. The library does not throw it; the gateway answers with it.',
    check:
      'The message and the log of the gateway have the code of the connection, such as `ECONNREFUSED` or `STREAM_CUT_OFF`.',
    fix: 'Check the address of the vendor and the network. Configure `retry` and `fallbacks`.',
    page: 'reference/error-codes.md',
    anchor: 'connection-errors',
  },
  STORE_UNAVAILABLE: {
    cause:
      'The store did not answer, and the outage rule of the mechanism is `refuse`; or several replies in a row were lost. Manual commands and jobs also fail with it.',
    check:
      '`spillway doctor` tests the connection. `guard.snapshot().store` and the event `store.degraded` have the reason.',
    fix: 'Restore Redis. Choose another outage rule if calls should continue without it.',
    page: 'concepts/outages.md',
  },
  STAGE_REFUSED: {
    cause: 'A custom stage of the application refused the call.',
    check: '`stage` is the name of the custom stage, `details` are its own.',
    fix: 'See the code of that stage. It may set its own `status` and `retryAfterMs`.',
    page: 'how-to/custom-stages.md',
  },
  SHUTTING_DOWN: {
    cause: 'The guard, mechanism or gateway was closed, or is draining.',
    check: 'The pod has received a signal, or `close()` was called.',
    fix: 'Retry: another pod answers. Remove a pod from its load balancer before it stops; see `drain` in Kubernetes.',
    page: 'how-to/guard.md',
    anchor: 'closing',
  },
}
