/** The table of exported metrics, with the names of each convention. */
import { MOST_LANES } from '../guard/fleet/fleet-report.js'
import type { GuardSnapshot } from '../guard/snapshot.js'
import type { Instrument, Labels, Row } from './instrument.js'
import { QUEUE_INSTRUMENTS } from './queue-instruments.js'
import type { View } from './source.js'

const BREAKER_STATES = ['closed', 'open', 'half-open', 'isolated'] as const
const STORE_STATES = ['memory', 'starting', 'shared', 'untrusted', 'unreachable', 'off'] as const

export const INSTRUMENTS: readonly Instrument[] = [
  {
    name: 'spillway_calls_total',
    dotted: 'spillway.calls',
    unit: '{call}',
    help: 'Calls that came to a guard.',
    kind: 'counter',
    labels: ['guard'],
    read: (view) => ofGuards(view, ({ calls }) => [[{}, calls]]),
  },
  {
    name: 'spillway_refused_total',
    dotted: 'spillway.calls.refused',
    unit: '{call}',
    help: 'Calls that guards refused, by stage and code.',
    kind: 'counter',
    labels: ['guard', 'stage', 'code'],
    read: (view) =>
      ofGuards(view, ({ refused }) =>
        refused.map(({ stage, code, count }) => [{ stage, code }, count]),
      ),
  },
  {
    name: 'spillway_refused_by_tier_total',
    dotted: 'spillway.calls.refused_by_tier',
    unit: '{call}',
    help: 'Refused calls that had a tier, by tier and code. Tiers after the first 20 count as (other).',
    kind: 'counter',
    labels: ['guard', 'tier', 'code'],
    read: (view) =>
      ofGuards(view, ({ refusedByTier }) =>
        refusedByTier.map(({ tier, code, count }) => [{ tier, code }, count]),
      ),
  },
  {
    name: 'spillway_would_have_refused_total',
    dotted: 'spillway.calls.would_have_refused',
    unit: '{call}',
    help: 'Calls that stages in shadow would have refused, by stage and code.',
    kind: 'counter',
    labels: ['guard', 'stage', 'code'],
    read: (view) =>
      ofGuards(view, ({ wouldHaveRefused }) =>
        wouldHaveRefused.map(({ stage, code, count }) => [{ stage, code }, count]),
      ),
  },
  {
    name: 'spillway_outcomes_total',
    dotted: 'spillway.attempts',
    unit: '{attempt}',
    help: 'Attempts, retries included, by how they ended.',
    kind: 'counter',
    labels: ['guard', 'outcome'],
    read: (view) =>
      ofGuards(view, ({ outcomes }) =>
        Object.entries(outcomes).map(([outcome, count]) => [{ outcome }, count]),
      ),
  },
  {
    name: 'spillway_streams_total',
    dotted: 'spillway.streams',
    unit: '{stream}',
    help: 'Streamed answers by how they ended.',
    kind: 'counter',
    labels: ['guard', 'end'],
    read: (view) =>
      ofGuards(view, ({ bodies }) =>
        Object.entries(bodies).map(([end, count]) => [{ end }, count]),
      ),
  },
  {
    name: 'spillway_degraded_total',
    dotted: 'spillway.calls.degraded',
    unit: '{call}',
    help: 'Calls that a fallback answered, by fallback and reason.',
    kind: 'counter',
    labels: ['guard', 'step', 'reason'],
    read: (view) =>
      ofGuards(view, ({ fallbacks }) =>
        fallbacks.map(({ step, reason, count }) => [{ step, reason }, count]),
      ),
  },
  {
    name: 'spillway_calls_active',
    dotted: 'spillway.calls.active',
    unit: '{call}',
    help: 'Calls that hold a slot.',
    kind: 'gauge',
    labels: ['guard'],
    read: (view) => ofGuards(view, ({ active }) => [[{}, active]]),
  },
  {
    name: 'spillway_calls_limit',
    dotted: 'spillway.calls.limit',
    unit: '{call}',
    help: 'Calls that may hold a slot at once.',
    kind: 'gauge',
    labels: ['guard'],
    read: (view) => ofGuards(view, ({ limit }) => (Number.isFinite(limit) ? [[{}, limit]] : [])),
  },
  {
    name: 'spillway_calls_waiting',
    dotted: 'spillway.calls.waiting',
    unit: '{call}',
    help: 'Calls in the queue.',
    kind: 'gauge',
    labels: ['guard', 'priority'],
    read: (view) =>
      ofGuards(view, ({ queue }) =>
        Object.entries(queue.byPriority).map(([priority, count]) => [{ priority }, count]),
      ),
  },
  {
    name: 'spillway_queue_oldest_seconds',
    dotted: 'spillway.queue.oldest',
    unit: 's',
    help: 'How long the oldest call in the queue has waited.',
    kind: 'gauge',
    labels: ['guard'],
    read: (view) => ofGuards(view, ({ queue }) => [[{}, queue.oldestMs / 1_000]]),
  },
  {
    name: 'spillway_breaker_state',
    dotted: 'spillway.breaker.state',
    unit: '1',
    help: 'One for the state a breaker is in, zero for the others.',
    kind: 'gauge',
    labels: ['guard', 'lane', 'state'],
    read: (view) =>
      ofGuards(view, ({ breakers }) =>
        breakers
          .slice(0, MOST_LANES)
          .flatMap(({ lane, state }) =>
            BREAKER_STATES.map((each): Row => [{ lane, state: each }, each === state ? 1 : 0]),
          ),
      ),
  },
  {
    name: 'spillway_retry_ratio',
    dotted: 'spillway.retry.ratio',
    unit: '1',
    help: 'Retries of the last seconds, as a fraction of the calls.',
    kind: 'gauge',
    labels: ['guard'],
    read: (view) =>
      ofGuards(view, ({ retries }) =>
        retries === undefined ? [] : [[{}, retries.retries / Math.max(1, retries.requests)]],
      ),
  },
  {
    name: 'spillway_limit_headroom_ratio',
    dotted: 'spillway.limit.headroom',
    unit: '1',
    help: 'What is left of a shared limit, as a fraction of it, for the whole fleet.',
    kind: 'gauge',
    labels: ['guard', 'lane', 'limit'],
    *read({ fleet, guardLabel }) {
      for (const { name, limits } of fleet.guards) {
        for (const { lane, id, limit, available } of limits) {
          yield [{ [guardLabel]: name, lane, limit: id }, Math.max(0, available) / limit]
        }
      }
    },
  },
  {
    name: 'spillway_limit_units',
    dotted: 'spillway.limit.units',
    unit: '{unit}',
    help: 'A shared limit as in force, in units per window.',
    kind: 'gauge',
    labels: ['guard', 'lane', 'limit'],
    *read({ fleet, guardLabel }) {
      for (const { name, limits } of fleet.guards) {
        for (const { lane, id, limit } of limits) {
          yield [{ [guardLabel]: name, lane, limit: id }, limit]
        }
      }
    },
  },
  {
    name: 'spillway_limit_configured_units',
    dotted: 'spillway.limit.configured',
    unit: '{unit}',
    help: 'A shared limit as configured. The vendor gives less if spillway_limit_units is lower.',
    kind: 'gauge',
    labels: ['guard', 'lane', 'limit'],
    *read({ fleet, guardLabel }) {
      for (const { name, limits } of fleet.guards) {
        for (const { lane, id, configured } of limits) {
          yield [{ [guardLabel]: name, lane, limit: id }, configured]
        }
      }
    },
  },
  {
    name: 'spillway_reserved_units_total',
    dotted: 'spillway.estimate.reserved',
    unit: '{unit}',
    help: 'Units that were reserved for calls whose actual cost is known.',
    kind: 'counter',
    labels: ['guard', 'unit'],
    read: (view) =>
      ofGuards(view, ({ estimates }) =>
        estimates.map(({ unit, reserved }) => [{ unit }, reserved]),
      ),
  },
  {
    name: 'spillway_actual_units_total',
    dotted: 'spillway.estimate.actual',
    unit: '{unit}',
    help: 'Actual cost of the calls in spillway_reserved_units_total.',
    kind: 'counter',
    labels: ['guard', 'unit'],
    read: (view) =>
      ofGuards(view, ({ estimates }) => estimates.map(({ unit, actual }) => [{ unit }, actual])),
  },
  {
    name: 'spillway_estimates_total',
    dotted: 'spillway.estimates',
    unit: '{call}',
    help: 'Calls whose actual cost is known, by unit and by the range of reserved / actual cost.',
    kind: 'counter',
    labels: ['guard', 'unit', 'ratio'],
    read: (view) =>
      ofGuards(view, ({ estimates }) =>
        estimates.flatMap(({ unit, ranges }) =>
          Object.entries(ranges).map(([ratio, count]): Row => [{ unit, ratio }, count]),
        ),
      ),
  },
  {
    name: 'spillway_fleet_requests_per_minute',
    dotted: 'spillway.fleet.requests',
    unit: '{call}/min',
    help: 'Calls of all pods in the last minute that took from shared limits.',
    kind: 'gauge',
    labels: ['guard'],
    *read({ fleet, guardLabel }) {
      for (const { name, requestsLastMinute } of fleet.guards) {
        if (requestsLastMinute !== undefined) yield [{ [guardLabel]: name }, requestsLastMinute]
      }
    },
  },
  {
    name: 'spillway_store_status',
    dotted: 'spillway.store.status',
    unit: '1',
    help: 'One for how the store stands for a guard, zero for the others.',
    kind: 'gauge',
    labels: ['guard', 'status'],
    read: (view) =>
      ofGuards(view, (guard) => {
        // A guard's view of its store is newer than the fleet report.
        const known = guard.store?.status ?? view.fleet.store
        return STORE_STATES.map((status): Row => [{ status }, status === known ? 1 : 0])
      }),
  },
  {
    name: 'spillway_pods',
    dotted: 'spillway.pods',
    unit: '{pod}',
    help: 'Pods alive, this one included.',
    kind: 'gauge',
    labels: [],
    read: ({ fleet }) => [[{}, fleet.livePods]],
  },
  {
    name: 'spillway_server_requests_total',
    dotted: 'spillway.server.requests',
    unit: '{request}',
    help: 'Requests to a server, by what was decided: admitted, unchecked, or the code of a refusal.',
    kind: 'counter',
    labels: ['server', 'decision'],
    *read({ servers }) {
      for (const { name: server, admitted, unchecked, refused } of servers) {
        yield [{ server, decision: 'admitted' }, admitted - unchecked]
        yield [{ server, decision: 'unchecked' }, unchecked]
        for (const { code, count } of refused) yield [{ server, decision: code }, count]
      }
    },
  },
  ...QUEUE_INSTRUMENTS,
]

function* ofGuards(
  { snapshot, guardLabel }: View,
  rows: (guard: GuardSnapshot) => readonly Row[],
): Iterable<Row> {
  for (const guard of snapshot.guards) {
    for (const [labels, value] of rows(guard))
      yield [{ [guardLabel]: guard.name, ...labels }, value]
  }
}

/** Largest number of series per metric, for any number of guards and lanes. */
const MOST_SERIES = 1_000
const OTHER = 'other'

/** The first rows. The rest of a counter is summed up, so that nothing is lost. */
export function bounded(rows: Iterable<Row>, kind: Instrument['kind']): Row[] {
  const kept: Row[] = []
  let rest: { labels: Labels; sum: number } | undefined
  for (const row of rows) {
    if (kept.length < MOST_SERIES) kept.push(row)
    else if (kind === 'counter') {
      const [labels, value] = row
      rest ??= {
        labels: Object.fromEntries(Object.keys(labels).map((name) => [name, OTHER])),
        sum: 0,
      }
      rest.sum += value
    }
  }
  if (rest !== undefined) kept.push([rest.labels, rest.sum])
  return kept
}
