/** The limit operations as scripts: encodes requests, decodes replies, and delivers published wake-ups. */
import { createHash } from 'node:crypto'
import { escaped, type Keys, unescaped } from '../../keys.js'
import type { LimitSpec } from '../../limit-spec.js'
import { hasMember } from '../../limits/lane-state.js'
import type {
  BreakerReport,
  LaneFigures,
  LaneRef,
  LimitStore,
  PermitWatcher,
  TakeReply,
  TakeRequest,
} from '../../port.js'
import type { ScriptRunner } from '../connection/runner.js'
import type { Subscribe, Subscription } from '../connection/subscription.js'
import { SCRIPTS } from '../scripts.gen.js'
import { readView, writeReport } from './redis-breakers.js'

/** Numbers of the algorithms in the scripts. */
const ALGORITHM = {
  'sliding-window': 1,
  'token-bucket': 2,
  'leaky-bucket': 3,
  'fixed-window': 4,
} as const

export interface RedisLimits extends LimitStore {
  close(): void
}

/** `time` replaces the server's, for tests that feed twins the same history. */
export function createRedisLimits(
  runner: ScriptRunner,
  keys: Keys,
  subscribe: Subscribe,
  time: () => string = () => '',
): RedisLimits {
  const watchers = createPermitWatchers(keys, subscribe)
  const laneKeys = (request: LaneRef, more: readonly string[] = []) =>
    limitKeys(keys, request, more)
  /** One JSON argument is cheaper to send and to read than many arguments. */
  const input = (request: LaneRef, scriptKeys: readonly string[], own: object) => {
    const m = memberAt(request, scriptKeys)
    const all = { v: request.version, l: writeLimits(request.limits), ...(m > 0 && { m }), ...own }
    return [time(), JSON.stringify(all), writeSpecs(request.limits).tag]
  }

  /** The most frequent command, so its JSON is put together from parts. */
  function takeArgs(request: TakeRequest, scriptKeys: readonly string[]): (string | number)[] {
    const { json, tag } = writeSpecs(request.limits)
    const { costs, version } = request
    const m = memberAt(request, scriptKeys)
    const member = m > 0 ? `,"m":${m}` : ''
    const own = `{"v":${version},"l":${json}${member}${watchers.writeWaiter(request)}}`
    const args = [time(), own, tag, writeCosts(costs), costs.length]
    for (const sum of sumsOf(request)) args.push(sum)
    return args
  }

  async function takeAndReport(request: TakeRequest, report: BreakerReport): Promise<TakeReply> {
    const { scriptKeys, input: outcomes } = writeReport(keys, report)
    const allKeys = laneKeys(request, scriptKeys)
    const all = [...takeArgs(request, allKeys), outcomes]
    const reply = await runner.run(SCRIPTS.takeAndReport, allKeys, all)
    const [granted, view] = reply as [number[], number[] | null]
    const answer = readTakeReply(granted, request)
    if (view !== null) answer.view = readView(view)
    return answer
  }

  return {
    take(request) {
      if (request.report !== undefined) return takeAndReport(request, request.report)
      const scriptKeys = laneKeys(request)
      return runner
        .run(SCRIPTS.takePermits, scriptKeys, takeArgs(request, scriptKeys))
        .then((reply) => readTakeReply(reply as number[], request))
    },
    async settle(request) {
      const { guard, pod, sequence } = request
      const settlements = request.settlements.map(({ limit, stamp, delta }) => [
        limit + 1,
        stamp,
        delta,
      ])
      const scriptKeys = laneKeys(request, [keys.sequence(guard, pod)])
      const args = input(request, scriptKeys, { sequence, settlements })
      return (await runner.run(SCRIPTS.settlePermits, scriptKeys, args)) as number
    },
    async book(request) {
      const { guard, pod, sequence } = request
      const spent = request.spent.map(({ limit, stamp, units }) => [limit + 1, stamp, units])
      const scriptKeys = laneKeys(request, [keys.sequence(guard, pod)])
      const args = input(request, scriptKeys, { sequence, spent })
      await runner.run(SCRIPTS.bookSpent, scriptKeys, args)
    },
    async feedback(request) {
      const own = {
        granted: request.grantedUs,
        throttled: request.throttled,
        pause: request.pauseUs ?? -1,
        base: request.basePauseUs,
        longest: request.maxPauseUs,
        left: request.left.map(({ limit, remaining, resetUs }) => [limit + 1, remaining, resetUs]),
        refused: request.refused,
      }
      const scriptKeys = laneKeys(request)
      const args = input(request, scriptKeys, own)
      const reply = await runner.run(SCRIPTS.applyFeedback, scriptKeys, args)
      const [pausedUntilUs, learned, effective] = reply as [number, number, number]
      return { pausedUntilUs, learned: learned === 0 ? undefined : learned - 1, effective }
    },
    async pause({ guard, lane, pool, forUs }) {
      const ref = { guard, lane: lane ?? '', pool, limits: [], version: 0 }
      const scriptKeys = laneKeys(ref)
      const args = input(ref, scriptKeys, { whole: lane === undefined, for_us: forUs })
      return (await runner.run(SCRIPTS.pauseLane, scriptKeys, args, 'patient')) as number
    },
    async change(request) {
      const { id = '', limit = 0, forUs = 0 } = request.override ?? {}
      const message = { channel: keys.limitChanges, text: escaped(request.guard) }
      const scriptKeys = laneKeys(request)
      const args = input(request, scriptKeys, { id, limit, for_us: forUs, ...message })
      return (await runner.run(SCRIPTS.changeLimits, scriptKeys, args, 'patient')) as number
    },
    async figures(request) {
      const scriptKeys = laneKeys(request, [keys.reports(request.guard)])
      const args = input(request, scriptKeys, {})
      const reply = await runner.run(SCRIPTS.readLimits, scriptKeys, args, 'brief')
      return readFigures(reply as FiguresWire, request)
    },
    async report({ guard, pod, requests }) {
      const args = [time(), pod, requests]
      await runner.run(SCRIPTS.reportRequests, [keys.reports(guard)], args, 'brief')
    },
    watch: watchers.add,
    close: watchers.close,
  }
}

/**
 * Each pod with watchers has one subscription: to its own channel and to the one of changed limits. A message
 * names the guard and, on the pod's own channel, the lane.
 */
function createPermitWatchers(keys: Keys, subscribe: Subscribe) {
  const pods = new Map<string, { watchers: Set<PermitWatcher>; subscription: Subscription }>()
  /** Consecutive requests are mostly of the same pod and lane. */
  let last: { request: TakeRequest; json: string } | undefined
  let closed = false

  function open(pod: string) {
    const watchers = new Set<PermitWatcher>()
    const subscription = subscribe([keys.permits(pod), keys.limitChanges], {
      onMessage(text) {
        const [guard = '', lane] = text.split(' ').map(unescaped)
        for (const each of watchers) each.onFreed(guard, lane)
      },
      onSubscribed() {
        for (const each of watchers) each.onGap()
      },
    })
    const made = { watchers, subscription }
    pods.set(pod, made)
    return made
  }

  return {
    add(pod: string, watcher: PermitWatcher): () => void {
      if (closed) return () => {}
      const { watchers, subscription } = pods.get(pod) ?? open(pod)
      watchers.add(watcher)
      return () => {
        if (!watchers.delete(watcher) || watchers.size > 0) return
        subscription.close()
        pods.delete(pod)
      }
    },
    /** The part of a request's JSON that registers the pod as waiting. */
    writeWaiter(request: TakeRequest): string {
      const { guard, lane, waiter } = request
      if (waiter === undefined) return ''
      const known = last?.request
      if (known?.guard !== guard || known.lane !== lane || known.waiter?.pod !== waiter.pod) {
        const text = `${escaped(guard)} ${escaped(lane)}`
        const json = `${JSON.stringify(keys.permits(waiter.pod))},${JSON.stringify(text)}`
        last = { request, json }
      }
      return `,"w":[${last?.json},${waiter.forUs}]`
    },
    close(): void {
      closed = true
      for (const { subscription } of pods.values()) subscription.close()
      pods.clear()
    },
  }
}

/** A pod sends the same limits with every request until they change. */
const written = new WeakMap<readonly LimitSpec[], Written>()

interface Written {
  json: string
  /** A digest. While a lane has this tag, the store counts by exactly these limits. */
  tag: string
  /** The largest costs while a lane has the tag: then all limits are windows. */
  capacities: readonly number[]
}

/** The width of the tag in a lane's head. */
const TAG_LENGTH = 16

/** Limits as scripts read them. */
export function writeSpecs(limits: readonly LimitSpec[]): Written {
  const known = written.get(limits)
  if (known !== undefined) return known
  const json = JSON.stringify(writeLimits(limits))
  const made = {
    json,
    tag: createHash('sha1').update(json).digest('hex').slice(0, TAG_LENGTH),
    capacities: limits.map(({ limit }) => limit),
  }
  written.set(limits, made)
  return made
}

/** Numbers of the spans in the scripts. */
const OF_LANE_OR_POOL = 0
const OF_VENDOR = 1
const OF_MEMBER = 2

function writeLimits(limits: readonly LimitSpec[]) {
  const ofLane = limits.some(({ span }) => span === 'pool') ? OF_MEMBER : OF_LANE_OR_POOL
  const spans = { lane: ofLane, pool: OF_LANE_OR_POOL, vendor: OF_VENDOR }
  return limits.map(({ id, algorithm, limit, windowUs, slices, burst, span, learn, day }) => [
    id,
    ALGORITHM[algorithm],
    limit,
    windowUs,
    slices,
    burst,
    spans[span],
    // Absent where possible, so that limits without them are written as before.
    ...(learn === true ? [1] : day === undefined ? [] : [false]),
    ...(day === undefined ? [] : [[day.quietUs, ...day.offsets]]),
  ])
}

/** The keys of a lane's states, `more` keys of the script, and last the key of the member, if there is one. */
export function limitKeys(keys: Keys, request: LaneRef, more: readonly string[]): string[] {
  const { guard, lane, pool } = request
  const home = pool === undefined ? keys.lane(guard, lane) : keys.pool(guard, pool)
  const all = [home, keys.guard(guard), ...more]
  if (hasMember(request)) all.push(keys.lane(guard, lane))
  return all
}

/** The number of the member's key, or 0. */
export function memberAt(request: LaneRef, scriptKeys: readonly string[]): number {
  return hasMember(request) ? scriptKeys.length : 0
}

/** One number per call and limit, without a bracket for each call. */
function writeCosts(costs: TakeRequest['costs']): string {
  const numbers: number[] = []
  for (const each of costs) {
    for (const cost of each) numbers.push(cost)
  }
  return JSON.stringify(numbers)
}

/** The cost of all calls together, by limit. */
function sumsOf({ limits, costs }: TakeRequest): number[] {
  const sums = limits.map(() => 0)
  for (const each of costs) {
    for (let index = 0; index < sums.length; index++) sums[index]! += each[index]!
  }
  return sums
}

/** Numbers in a reply before the stamps, and between them and the capacities. */
const BEFORE_STAMPS = 2
const BEFORE_CAPACITIES = 3

export function readTakeReply(reply: readonly number[], request: LaneRef): TakeReply {
  const [granted, nowUs] = reply as [number, number]
  const { limits } = request
  const stampsEnd = BEFORE_STAMPS + limits.length
  const stamps = reply.slice(BEFORE_STAMPS, stampsEnd)
  if (reply.length === stampsEnd) {
    const { capacities } = writeSpecs(limits)
    return { granted, waitUs: 0, paused: false, nowUs, stamps, capacities }
  }
  const capacitiesAt = stampsEnd + BEFORE_CAPACITIES
  const capacitiesEnd = capacitiesAt + limits.length
  const [waitUs, paused, version] = reply.slice(stampsEnd, capacitiesAt) as [number, number, number]
  const capacities = reply.slice(capacitiesAt, capacitiesEnd)
  const answer: TakeReply = { granted, waitUs, paused: paused === 1, nowUs, stamps, capacities }
  const leftEnd = waitUs > 0 ? capacitiesEnd + limits.length : capacitiesEnd
  if (waitUs > 0) answer.left = reply.slice(capacitiesEnd, leftEnd)
  if (version > request.version) {
    answer.newer = { version, limits: readNewer(reply, leftEnd, limits) }
  }
  return answer
}

function readNewer(
  reply: readonly number[],
  at: number,
  limits: readonly LimitSpec[],
): LimitSpec[] {
  return limits.map((spec, index) => {
    const fields = reply.slice(at + index * 4, at + index * 4 + 4)
    const [limit, windowUs, burst, slices] = fields as [number, number, number, number]
    return { ...spec, limit, windowUs, burst, slices }
  })
}

type FiguresWire = [
  nowUs: number,
  version: number,
  pausedUntilUs: number,
  figures: number[],
  requests: number,
]

/** Numbers for each limit. */
const FIGURES = 5

function readFigures(reply: FiguresWire, request: LaneRef): LaneFigures {
  const [nowUs, version, pausedUntilUs, figures, requestsLastMinute] = reply
  const limits = request.limits.map(({ id }, index) => {
    const numbers = figures.slice(index * FIGURES, (index + 1) * FIGURES)
    const [limit = 0, used = 0, remaining = 0, waitUs = 0, configured = 0] = numbers
    return { id, limit, configured, used, remaining, waitUs }
  })
  return { nowUs, version, pausedUntilUs, limits, requestsLastMinute }
}
