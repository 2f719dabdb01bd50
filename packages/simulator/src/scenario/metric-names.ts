/** Metrics of a run that an expectation can use, each with its description. */
export const METRICS = {
  served: 'share of requests answered well and in time',
  goodput: 'good answers a second, as a share of the vendor’s capacity',
  amplification: 'calls at the vendor for each request of a user',
  attemptsPerCall: 'calls at the vendor for each request that reached it at least once',
  p50Ms: 'median time to a good answer',
  p99Ms: '99th percentile of the time to a good answer',
  endedP99Ms: '99th percentile of the time until a request ended, served or not',
  recoveredMs: 'time until nine of ten requests are served, and stay so',
  worstWindow: 'most calls at the vendor in any window, as a share of its limit',
  throttled: 'calls the vendor answered with 429',
  throttledShare: 'share of the calls at the vendor that it answered with 429',
  limitUse: 'calls that the vendor accepted, as a share of what its first limit allows',
  throttledOfNaive: 'calls answered with 429, as a share of the baseline’s',
  vendorAtOnce: 'most concurrent calls at the vendor, as a share of its capacity',
  probesAtOnce: 'most calls started at once while the breaker was not closed',
  opens: 'number of times the breaker opened for the fleet',
  waiting: 'most queued calls inside the pods',
} as const

/** Name of a metric. */
export type MetricName = keyof typeof METRICS
export const METRIC_NAMES = Object.keys(METRICS) as MetricName[]
