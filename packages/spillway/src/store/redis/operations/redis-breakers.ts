/** The breaker operations as scripts; messages that scripts publish become calls of watchers. */
import type { BreakerSpec } from '../../breaker-spec.js'
import { escaped, type Keys, unescaped } from '../../keys.js'
import type {
  BreakerRef,
  BreakerReport,
  BreakerStore,
  BreakerView,
  BreakerWatcher,
  SyncRequest,
} from '../../port.js'
import type { ScriptRunner } from '../connection/runner.js'
import type { Subscribe, Subscription } from '../connection/subscription.js'
import { SCRIPTS } from '../scripts.gen.js'

export interface RedisBreakers extends BreakerStore {
  close(): void
}

const NO_COMMAND = { holder: undefined, forUs: 0, generation: undefined }

/** `time` replaces the server's time in twin tests. */
export function createRedisBreakers(
  runner: ScriptRunner,
  keys: Keys,
  subscribe: Subscribe,
  time: () => string = () => '',
): RedisBreakers {
  const watchers = createWatchers(keys.breakers, subscribe)
  const keyOf = ({ guard, lane }: BreakerRef) => keys.breaker(guard, lane)
  const args = (own: object) => [time(), JSON.stringify({ channel: keys.breakers, ...own })]
  const one = (request: BreakerRef, own: object) => [time(), writeInput(keys, request, own)]

  async function syncAlike(requests: readonly SyncRequest[], spec: BreakerSpec) {
    const breakers = requests.map((each) => [nameOf(each), each.renew])
    const input = args({ spec: writeSpec(spec), breakers })
    const reply = await runner.run(SCRIPTS.syncBreakers, requests.map(keyOf), input)
    return (reply as number[][]).map(readView)
  }

  return {
    async report(request) {
      const { scriptKeys, input } = writeReport(keys, request)
      const reply = await runner.run(SCRIPTS.reportOutcomes, scriptKeys, [time(), input])
      return readView(reply as number[])
    },
    async probe(request) {
      const own = { probes: request.probes }
      const reply = await runner.run(SCRIPTS.takeProbes, [keyOf(request)], one(request, own))
      const [granted, ...view] = reply as [number, ...number[]]
      return { granted, view: readView(view) }
    },
    async sync(requests) {
      const views: BreakerView[] = []
      const groups = groupAlike(requests).map(async ({ spec, indexes }) => {
        const group = indexes.map((index) => requests[index] as SyncRequest)
        const answers = await syncAlike(group, spec)
        for (const [at, index] of indexes.entries()) views[index] = answers[at] as BreakerView
      })
      await Promise.all(groups)
      return views
    },
    async command(request) {
      const { kind: command, ...rest } = { ...NO_COMMAND, ...request.command }
      const { holder, forUs: for_us, generation } = rest
      const own = { command, holder, for_us, generation }
      const reply = await runner.run(
        SCRIPTS.commandBreaker,
        [keyOf(request)],
        one(request, own),
        'patient',
      )
      return readView(reply as number[])
    },
    watch: watchers.add,
    close: watchers.close,
  }
}

/** The keys and the input of a report, for a separate script or as part of another one. */
export function writeReport(
  keys: Keys,
  request: BreakerReport,
): { scriptKeys: string[]; input: string } {
  const { guard, lane, pod, sequence, generation, outcomes, inFlight, hung, probes } = request
  const written = hung && [hung.answeredAgoUs, hung.failed, hung.overdue]
  const own = { pod, sequence, generation, outcomes, in_flight: inFlight, hung: written, probes }
  return {
    scriptKeys: [keys.breaker(guard, lane), keys.outcomes(guard, lane, pod), keys.pods(guard)],
    input: writeInput(keys, request, own),
  }
}

/** The input that `include/breaker-state` reads. */
export function writeInput(keys: Keys, request: BreakerRef, own: object): string {
  const { breakers: channel } = keys
  const spec = writeSpec(request.spec)
  return JSON.stringify({ channel, spec, name: nameOf(request), ...own })
}

/** All watchers share one subscription, which exists while there are any. */
function createWatchers(channel: string, subscribe: Subscribe) {
  const watchers = new Set<BreakerWatcher>()
  let subscription: Subscription | undefined
  let closed = false

  function onMessage(text: string): void {
    const published = readPublished(text)
    if (published === undefined) return
    for (const each of watchers) each.onView(published.guard, published.lane, published.view)
  }
  function leave(): void {
    subscription?.close()
    subscription = undefined
  }
  return {
    add(watcher: BreakerWatcher): () => void {
      if (closed) return () => {}
      watchers.add(watcher)
      subscription ??= subscribe(channel, {
        onMessage,
        onSubscribed() {
          for (const each of watchers) each.onGap()
        },
      })
      return () => {
        watchers.delete(watcher)
        if (watchers.size === 0) leave()
      }
    },
    close(): void {
      closed = true
      watchers.clear()
      leave()
    },
  }
}

interface AlikeRequests {
  guard: string
  spec: BreakerSpec
  /** Positions in the list of all requests. */
  indexes: number[]
}

/**
 * One script touches one hash slot, so guards are separate. A guard's lanes share their spec, which the script
 * reads once: that saves a fifth of Redis's time for a sync.
 */
function groupAlike(requests: readonly SyncRequest[]): AlikeRequests[] {
  const groups: AlikeRequests[] = []
  for (const [index, { guard, spec }] of requests.entries()) {
    const known = groups.find((each) => each.guard === guard && each.spec === spec)
    if (known === undefined) groups.push({ guard, spec, indexes: [index] })
    else known.indexes.push(index)
  }
  return groups
}

function nameOf({ guard, lane }: BreakerRef): string {
  return `${escaped(guard)} ${escaped(lane)}`
}

/** In the order in which `breaker-tally.lua` names them. */
function writeSpec(spec: BreakerSpec): number[] {
  return [
    spec.consecutive,
    spec.failureRate,
    spec.slowRate,
    spec.windowUs,
    spec.windowCalls,
    spec.minimumCalls,
    spec.openUs,
    spec.openFactor,
    spec.maxOpenUs,
    spec.probes,
    spec.successes,
    spec.probeLeaseUs,
    spec.quorum,
  ]
}

/** In the order in which `breaker-state.lua` writes them. */
const VIEW_FIELDS = [
  'nowUs',
  'version',
  'generation',
  'kind',
  'untilUs',
  'closedAtUs',
  'openings',
  'probes',
  'successes',
  'failedProbes',
  'isolatedUntilUs',
  'calls',
  'failures',
  'slow',
  'inFlight',
  'consecutive',
] as const satisfies readonly (keyof BreakerView)[]

export function readView(numbers: readonly number[]): BreakerView {
  const fields = VIEW_FIELDS.map((field, index) => [field, numbers[index]])
  return Object.fromEntries(fields) as BreakerView
}

/** Undefined for messages of other programs. */
export function readPublished(
  text: string,
): { guard: string; lane: string; view: BreakerView } | undefined {
  const [guard = '', lane = '', ...fields] = text.split(' ')
  const numbers = fields.map(Number)
  const isView = numbers.length === VIEW_FIELDS.length && numbers.every(Number.isSafeInteger)
  return isView
    ? { guard: unescaped(guard), lane: unescaped(lane), view: readView(numbers) }
    : undefined
}
