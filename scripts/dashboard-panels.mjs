// The panels of the Grafana dashboards. `npm run dashboards` writes deploy/grafana/*.json from this table.
//
// A panel is [title, unit, query, legend]. A query with several lines in a panel is a list of [query, legend].
// Counters are summed over gateways. Gauges of the fleet have the same value on each gateway, so max or min reads one.

const RATE = '[$__rate_interval]'
const GUARD = '{vendor="$vendor"}'
const ROUTE = '{route=~"$route"}'

/** Requests, calls or other events per second. */
const rate = (metric, labels = '') => `rate(${metric}${labels}${RATE})`
const sumOf = (by, metric, labels) => `sum by (${by}) (${rate(metric, labels)})`

/** Percentiles of a histogram, one line each. */
function percentiles(metric, labels, by) {
  const sum = by === undefined ? 'le' : `${by}, le`
  const legend = by === undefined ? '' : ` {{${by}}}`
  return [0.5, 0.95, 0.99].map((share) => [
    `histogram_quantile(${share}, sum by (${sum}) (${rate(`${metric}_bucket`, labels)}))`,
    `p${share * 100}${legend}`,
  ])
}

function percentile95(metric, labels, by) {
  return percentiles(metric, labels, by).slice(1, 2)
}

const FLEET = {
  file: 'fleet.json',
  uid: 'spillway-fleet',
  title: 'Spillway: fleet',
  description: 'All gateways: traffic, refusals, limits, breakers, Redis and processes.',
  variables: [],
  rows: [
    {
      title: 'Now',
      panels: [
        ['Live pods', 'short', 'max(spillway_pods)', 'pods'],
        ['Scraped gateways', 'short', 'sum(up{job=~".*spillway.*"})', 'gateways'],
        [
          'Open breakers',
          'short',
          'sum(max by (vendor, lane) (spillway_breaker_state{state="open"}))',
          'open',
        ],
        ['Lowest headroom', 'percentunit', 'min(spillway_limit_headroom_ratio)', 'left'],
      ],
      kind: 'stat',
    },
    {
      title: 'Traffic',
      panels: [
        ['Requests by status', 'reqps', sumOf('status', 'spillway_requests_total'), '{{status}}'],
        [
          'Share of 5xx answers',
          'percentunit',
          `(sum(${rate('spillway_requests_total', '{status=~"5.."}')}) or vector(0)) / sum(${rate('spillway_requests_total')})`,
          '5xx',
        ],
        ['Request duration', 's', percentiles('spillway_request_seconds')],
        ['Time to first byte', 's', percentiles('spillway_first_byte_seconds')],
        [
          'Requests in progress',
          'short',
          'sum by (instance) (spillway_requests_running)',
          '{{instance}}',
        ],
        [
          'Tokens per second',
          'short',
          sumOf('vendor, kind', 'spillway_tokens_total'),
          '{{vendor}} {{kind}}',
        ],
      ],
    },
    {
      title: 'Vendors',
      panels: [
        ['Calls by vendor', 'reqps', sumOf('vendor', 'spillway_calls_total'), '{{vendor}}'],
        [
          'Attempts by vendor, retries included',
          'reqps',
          sumOf('vendor', 'spillway_attempts_total'),
          '{{vendor}}',
        ],
        [
          'Refused calls',
          'reqps',
          sumOf('vendor, code', 'spillway_refused_total'),
          '{{vendor}} {{code}}',
        ],
        [
          'Requests of the fleet in the last minute',
          'short',
          'max by (vendor) (spillway_fleet_requests_per_minute)',
          '{{vendor}}',
        ],
        [
          'Headroom of shared limits',
          'percentunit',
          'min by (vendor, lane, limit) (spillway_limit_headroom_ratio)',
          '{{vendor}} {{lane}} {{limit}}',
        ],
        [
          'Open breakers',
          'short',
          'max by (vendor, lane) (spillway_breaker_state{state="open"})',
          '{{vendor}} {{lane}}',
        ],
        [
          'Quarantined keys',
          'short',
          'max by (vendor, key) (spillway_key_quarantined)',
          '{{vendor}} {{key}}',
        ],
      ],
    },
    {
      title: 'Gateways and Redis',
      panels: [
        [
          'Gateways by status of the store',
          'short',
          'sum by (status) (max by (instance, status) (spillway_store_status))',
          '{{status}}',
        ],
        [
          'Configuration refused',
          'short',
          'max by (instance) (spillway_config_refused)',
          '{{instance}}',
        ],
        [
          'Generation of the configuration',
          'short',
          'max by (instance) (spillway_config_generation)',
          '{{instance}}',
        ],
        [
          'CPU',
          'percentunit',
          `sum by (instance) (${rate('process_cpu_seconds_total')})`,
          '{{instance}}',
        ],
        ['Memory', 'bytes', 'sum by (instance) (process_resident_memory_bytes)', '{{instance}}'],
        [
          'Event loop lag (p99)',
          's',
          'max by (instance) (nodejs_eventloop_lag_p99_seconds)',
          '{{instance}}',
        ],
      ],
    },
  ],
}

const ONE_GUARD = {
  file: 'guard.json',
  uid: 'spillway-guard',
  title: 'Spillway: one guard',
  description:
    'One vendor: its calls, refusals, queue, slots, limits, breaker, retries and job queues.',
  variables: [
    { name: 'vendor', label: 'Vendor', query: 'label_values(spillway_calls_total, vendor)' },
  ],
  rows: [
    {
      title: 'Calls',
      panels: [
        [
          'Calls by gateway',
          'reqps',
          sumOf('instance', 'spillway_calls_total', GUARD),
          '{{instance}}',
        ],
        [
          'Attempts by outcome',
          'reqps',
          sumOf('outcome', 'spillway_outcomes_total', GUARD),
          '{{outcome}}',
        ],
        [
          'Refused calls by stage and code',
          'reqps',
          sumOf('stage, code', 'spillway_refused_total', GUARD),
          '{{stage}} {{code}}',
        ],
        [
          'Calls that stages in shadow would have refused',
          'reqps',
          sumOf('stage, code', 'spillway_would_have_refused_total', GUARD),
          '{{stage}} {{code}}',
        ],
        [
          'Streamed answers by end',
          'reqps',
          sumOf('end', 'spillway_streams_total', GUARD),
          '{{end}}',
        ],
        ['Tokens per second', 'short', sumOf('kind', 'spillway_tokens_total', GUARD), '{{kind}}'],
      ],
    },
    {
      title: 'Queue and slots',
      panels: [
        [
          'Slots',
          'short',
          [
            [`sum(spillway_calls_active${GUARD})`, 'in use'],
            [`sum(spillway_calls_limit${GUARD})`, 'all'],
          ],
        ],
        [
          'Calls in the queue',
          'short',
          `sum by (priority) (spillway_calls_waiting${GUARD})`,
          '{{priority}}',
        ],
        [
          'Oldest call in the queue',
          's',
          `max by (instance) (spillway_queue_oldest_seconds${GUARD})`,
          '{{instance}}',
        ],
        ['Time in the queue', 's', percentiles('spillway_queue_wait_seconds', GUARD)],
        [
          'Duration of attempts (p95)',
          's',
          percentile95('spillway_attempt_seconds', GUARD, 'attempt'),
        ],
        [
          'Retries per call',
          'percentunit',
          `max by (instance) (spillway_retry_ratio${GUARD})`,
          '{{instance}}',
        ],
      ],
    },
    {
      title: 'Limits and breaker',
      panels: [
        [
          'Headroom of shared limits',
          'percentunit',
          `min by (lane, limit) (spillway_limit_headroom_ratio${GUARD})`,
          '{{lane}} {{limit}}',
        ],
        [
          'Limits: in force and configured',
          'short',
          [
            [`min by (lane, limit) (spillway_limit_units${GUARD})`, '{{lane}} {{limit}}'],
            [
              `min by (lane, limit) (spillway_limit_configured_units${GUARD})`,
              '{{lane}} {{limit}} configured',
            ],
          ],
        ],
        [
          'Requests of the fleet in the last minute',
          'short',
          `max(spillway_fleet_requests_per_minute${GUARD})`,
          'requests',
        ],
        [
          'Breakers by state',
          'short',
          `sum by (state) (max by (lane, state) (spillway_breaker_state${GUARD}))`,
          '{{state}}',
        ],
        ['Quarantined keys', 'short', `max by (key) (spillway_key_quarantined${GUARD})`, '{{key}}'],
        [
          'Gateways by status of the store',
          'short',
          `sum by (status) (spillway_store_status${GUARD})`,
          '{{status}}',
        ],
      ],
    },
    {
      title: 'Job queues',
      panels: [
        [
          'Waiting jobs',
          'short',
          `max by (queue, priority) (spillway_jobs_waiting${GUARD})`,
          '{{queue}} {{priority}}',
        ],
        [
          'Jobs by state',
          'short',
          `max by (queue, state) (spillway_jobs_by_state${GUARD})`,
          '{{queue}} {{state}}',
        ],
        [
          'Turns by outcome',
          'ops',
          sumOf('queue, outcome', 'spillway_jobs_total', GUARD),
          '{{queue}} {{outcome}}',
        ],
        [
          'Oldest waiting job',
          's',
          `max by (queue) (spillway_jobs_oldest_seconds${GUARD})`,
          '{{queue}}',
        ],
      ],
    },
  ],
}

const CALLERS = {
  file: 'callers.json',
  uid: 'spillway-callers',
  title: 'Spillway: callers',
  description:
    'What callers notice: answers and waiting times by route, refusals by reason, tier and priority.',
  variables: [
    {
      name: 'route',
      label: 'Route',
      query: 'label_values(spillway_requests_total, route)',
      all: true,
    },
  ],
  rows: [
    {
      title: 'Answers',
      panels: [
        [
          'Requests by route',
          'reqps',
          sumOf('route', 'spillway_requests_total', ROUTE),
          '{{route}}',
        ],
        [
          'Requests by status',
          'reqps',
          sumOf('status', 'spillway_requests_total', ROUTE),
          '{{status}}',
        ],
        [
          'Refused, failed and degraded requests by reason',
          'reqps',
          sumOf('reason', 'spillway_requests_total', '{route=~"$route",reason!=""}'),
          '{{reason}}',
        ],
        [
          'Requests that a fallback answered',
          'reqps',
          sumOf('route, vendor', 'spillway_fallbacks_total', ROUTE),
          '{{route}} {{vendor}}',
        ],
        ['Answers by end', 'reqps', sumOf('end', 'spillway_bodies_total'), '{{end}}'],
      ],
    },
    {
      title: 'Waiting times',
      panels: [
        ['Request duration (p95)', 's', percentile95('spillway_request_seconds', ROUTE, 'route')],
        [
          'Time to first byte (p95)',
          's',
          percentile95('spillway_first_byte_seconds', ROUTE, 'route'),
        ],
        [
          'Calls in the queue by priority',
          'short',
          'sum by (priority) (spillway_calls_waiting)',
          '{{priority}}',
        ],
      ],
    },
    {
      title: 'Refusals',
      panels: [
        [
          'Refused calls by tier',
          'reqps',
          sumOf('tier, code', 'spillway_refused_by_tier_total'),
          '{{tier}} {{code}}',
        ],
        ['Refused calls by stage', 'reqps', sumOf('stage', 'spillway_refused_total'), '{{stage}}'],
        [
          'Refused connections',
          'cps',
          sumOf('instance', 'spillway_connections_refused_total'),
          '{{instance}}',
        ],
      ],
    },
  ],
}

export const DASHBOARDS = [FLEET, ONE_GUARD, CALLERS]
