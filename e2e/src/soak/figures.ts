/** The figures of a soak run: results of the requests, and resources in use at rest. */
import { atLeast, atMost, type Figure, reported } from '../scenario.js'
import type { Load, LostRequest } from './load.js'
import type { InjectedFault } from './random-faults.js'
import type { Sample } from './sample.js'

/** Heap at rest afterwards, relative to the heap at rest after the warm-up. */
const MOST_HEAP_GROWTH = 1.1
/** A leak of keys grows with time; lanes and users that are in use do not. */
const MOST_KEY_GROWTH = 1.1
/** Connections to Redis open and close at any time. */
const MOST_MORE_DESCRIPTORS = 20
const LONG_WAIT_MS = 1_000

export function answerFigures(load: Load, faults: readonly InjectedFault[]): Figure[] {
  const { sent, aborted, answered, succeeded } = load
  const lost = load.lost.map((request) => ({ request, fault: breakingFault(request, faults) }))
  const broken = lost.flatMap(({ fault }) => (fault === undefined ? [] : [fault.name]))
  const unanswered = lost.flatMap(({ request, fault }) => (fault === undefined ? [request] : []))
  const counts: [string, number][] = [
    ...load.answers,
    ...countBy(unanswered, (request) => `${request.code}, ${during(request, faults)}`),
  ]
  for (const [what, count] of counts) process.stderr.write(`  ${what}: ${count}\n`)
  return [
    reported('requests', sent),
    reported('answered with 200', succeeded),
    reported('refused or failed with an answer', answered - succeeded),
    reported('aborted by the client', aborted),
    ...countBy(broken, (name) => name).map(([name, count]) =>
      reported(`incomplete, because the ${name}`, count),
    ),
    atMost('without an answer', unanswered.length, 0),
    ...(unanswered.length === 0 ? [] : causeFigures(unanswered)),
  ]
}

/** Hints at the cause: in the client, before the gateway has accepted the connection, or in the gateway. */
function causeFigures(unanswered: readonly LostRequest[]): Figure[] {
  const waited = unanswered.filter(({ waitedMs = LONG_WAIT_MS }) => waitedMs >= LONG_WAIT_MS)
  const unaccepted = unanswered.filter(({ onNewConnection }) => onNewConnection)
  return [
    reported('  waited a second for a connection', waited.length),
    reported('  connection never answered anything', unaccepted.length),
  ]
}

/** The fault because of which the vendor did not complete the answer. */
function breakingFault({ fromS, untilS, begun }: LostRequest, faults: readonly InjectedFault[]) {
  if (!begun) return undefined
  return faults.find((each) => each.breaksAnswers && each.atS <= untilS && each.untilS >= fromS)
}

function during({ fromS, untilS }: LostRequest, faults: readonly InjectedFault[]): string {
  const names = faults.filter((each) => each.atS <= untilS && each.untilS >= fromS)
  return names.length === 0 ? 'no fault' : names.map(({ name }) => name).join(' and ')
}

function countBy<T>(items: readonly T[], keyOf: (item: T) => string): [string, number][] {
  const counts = new Map<string, number>()
  for (const item of items) counts.set(keyOf(item), (counts.get(keyOf(item)) ?? 0) + 1)
  return [...counts]
}

/** `before` and `after`: at rest. */
export function leakFigures(index: number, before: Sample, after: Sample): Figure[] {
  const old = before.gateways[index]!
  const now = after.gateways[index]!
  const name = `gateway ${index + 1}`
  return [
    reported(`${name}: heap at rest before, MB`, old.heapMb),
    reported(`${name}: heap at rest after, MB`, now.heapMb),
    atMost(`${name}: heap after / before`, now.heapMb / old.heapMb, MOST_HEAP_GROWTH),
    atMost(
      `${name}: descriptors more than before`,
      now.descriptors - old.descriptors,
      MOST_MORE_DESCRIPTORS,
    ),
    atMost(`${name}: slots held at rest`, now.active, 0),
    atMost(`${name}: calls queued at rest`, now.waiting, 0),
    atMost(`${name}: requests inside at rest`, now.running, 0),
    atLeast(`${name}: limit free at rest, %`, now.headroom * 100, 99.9),
  ]
}

export function keyFigures(samples: readonly Sample[]): Figure[] {
  const third = Math.ceil(samples.length / 3)
  const first = mostKeys(samples.slice(0, third))
  return [
    reported('Redis keys, most in the first third', first),
    atMost(
      'Redis keys, last third / first third',
      mostKeys(samples.slice(-third)) / first,
      MOST_KEY_GROWTH,
    ),
  ]
}

function mostKeys(samples: readonly Sample[]): number {
  return Math.max(1, ...samples.map(({ redisKeys = 0 }) => redisKeys))
}

/** Load of the machine: gateways that wait for a CPU answer late. */
export function machineFigures(
  samples: readonly Sample[],
  waitedForCpu: number | undefined,
): Figure[] {
  const delays = samples.flatMap(({ gateways }) => gateways.map(({ loopDelayMs }) => loopDelayMs))
  return [
    reported('longest event-loop delay of a gateway, ms', Math.max(0, ...delays)),
    ...(waitedForCpu === undefined
      ? []
      : [reported('time that a process waited for a CPU, %', waitedForCpu * 100)]),
  ]
}
