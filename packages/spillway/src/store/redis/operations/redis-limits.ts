/** The limit operations as scripts: encodes requests and decodes replies. */
import { createHash } from 'node:crypto'
import type { Keys } from '../../keys.js'
import type { LimitSpec } from '../../limit-spec.js'
import type {
  BreakerReport,
  LaneFigures,
  LaneRef,
  LimitStore,
  TakeReply,
  TakeRequest,
} from '../../port.js'
import type { ScriptRunner } from '../connection/runner.js'
import { SCRIPTS } from '../scripts.gen.js'
import { readView, writeReport } from './redis-breakers.js'

/** Numbers of the algorithms in the scripts. */
const ALGORITHM = {
  'sliding-window': 1,
  'token-bucket': 2,
  'leaky-bucket': 3,
  'fixed-window': 4,
} as const

/** `time` replaces the server's time in twin tests. */
export function createRedisLimits(
  runner: ScriptRunner,
  keys: Keys,
  time: () => string = () => '',
): LimitStore {
  const laneKeys = ({ guard, lane }: LaneRef) => [keys.lane(guard, lane), keys.guard(guard)]
  /** One JSON argument is cheaper to send and to parse than many arguments. */
  const input = (request: LaneRef, own: object) => [
    time(),
    JSON.stringify({ v: request.version, l: request.limits.map(writeSpec), ...own }),
    writeSpecs(request.limits).tag,
  ]

  async function takeAndReport(
    request: TakeRequest,
    args: readonly (string | number)[],
    report: BreakerReport,
  ): Promise<TakeReply> {
    const { scriptKeys, input: outcomes } = writeReport(keys, report)
    const allKeys = [...laneKeys(request), ...scriptKeys]
    const reply = await runner.run(SCRIPTS.takeAndReport, allKeys, [...args, outcomes])
    const [granted, view] = reply as [number[], number[] | null]
    const answer = readTakeReply(granted, request)
    if (view !== null) answer.view = readView(view)
    return answer
  }

  return {
    take(request) {
      // Built by hand, because every call passes here.
      const { json, tag } = writeSpecs(request.limits)
      const asked = `{"v":${request.version},"l":${json}}`
      const { costs } = request
      const args = [time(), asked, tag, writeCosts(costs), costs.length]
      for (const sum of sumsOf(request)) args.push(sum)
      if (request.report !== undefined) return takeAndReport(request, args, request.report)
      return runner
        .run(SCRIPTS.takePermits, laneKeys(request), args)
        .then((reply) => readTakeReply(reply as number[], request))
    },
    async settle(request) {
      const { guard, pod, sequence } = request
      const settlements = request.settlements.map(({ limit, stamp, delta }) => [
        limit + 1,
        stamp,
        delta,
      ])
      const scriptKeys = [...laneKeys(request), keys.sequence(guard, pod)]
      await runner.run(SCRIPTS.settlePermits, scriptKeys, input(request, { sequence, settlements }))
    },
    async book(request) {
      const { guard, pod, sequence } = request
      const spent = request.spent.map(({ limit, stamp, units }) => [limit + 1, stamp, units])
      const scriptKeys = [...laneKeys(request), keys.sequence(guard, pod)]
      await runner.run(SCRIPTS.bookSpent, scriptKeys, input(request, { sequence, spent }))
    },
    async feedback(request) {
      const own = {
        granted: request.grantedUs,
        throttled: request.throttled,
        pause: request.pauseUs ?? -1,
        base: request.basePauseUs,
        longest: request.maxPauseUs,
        left: request.left.map(({ limit, remaining, resetUs }) => [limit + 1, remaining, resetUs]),
      }
      const args = input(request, own)
      return (await runner.run(SCRIPTS.applyFeedback, laneKeys(request), args)) as number
    },
    async pause({ guard, lane, forUs }) {
      const ref = { guard, lane: lane ?? '', limits: [], version: 0 }
      const args = input(ref, { whole: lane === undefined, for_us: forUs })
      return (await runner.run(SCRIPTS.pauseLane, laneKeys(ref), args, 'patient')) as number
    },
    async change(request) {
      const { id = '', limit = 0, forUs = 0 } = request.override ?? {}
      const args = input(request, { id, limit, for_us: forUs })
      return (await runner.run(SCRIPTS.changeLimits, laneKeys(request), args, 'patient')) as number
    },
    async figures(request) {
      const scriptKeys = [...laneKeys(request), keys.reports(request.guard)]
      const reply = await runner.run(SCRIPTS.readLimits, scriptKeys, input(request, {}), 'brief')
      return readFigures(reply as FiguresWire, request)
    },
    async report({ guard, pod, requests }) {
      const args = [time(), pod, requests]
      await runner.run(SCRIPTS.reportRequests, [keys.reports(guard)], args, 'brief')
    },
  }
}

/** A limiter sends the same limits in every round trip until they change. */
const written = new WeakMap<readonly LimitSpec[], Written>()

interface Written {
  json: string
  /** A digest. While a lane has it, the store counts by these limits as encoded here. */
  tag: string
  /** The largest costs while a lane has the tag: then all limits are windows. */
  capacities: readonly number[]
}

/** Length of the lane's field for it. */
const TAG_LENGTH = 16

/** Encodes limits for the scripts. */
export function writeSpecs(limits: readonly LimitSpec[]): Written {
  const known = written.get(limits)
  if (known !== undefined) return known
  const json = JSON.stringify(limits.map(writeSpec))
  const made = {
    json,
    tag: createHash('sha1').update(json).digest('hex').slice(0, TAG_LENGTH),
    capacities: limits.map(({ limit }) => limit),
  }
  written.set(limits, made)
  return made
}

function writeSpec({ id, algorithm, limit, windowUs, slices, burst, span }: LimitSpec) {
  return [id, ALGORITHM[algorithm], limit, windowUs, slices, burst, span === 'vendor' ? 1 : 0]
}

/** Calls of equal cost share one list object, which is encoded once for consecutive calls. */
function writeCosts(costs: TakeRequest['costs']): string {
  let written: readonly number[] | undefined
  let numbers = ''
  let text = '['
  for (const each of costs) {
    if (each !== written) {
      written = each
      numbers = each.join()
    }
    text += text === '[' ? numbers : `,${numbers}`
  }
  return `${text}]`
}

/** Per limit, the sum of all costs. */
function sumsOf({ limits, costs }: TakeRequest): number[] {
  const sums = limits.map(() => 0)
  for (const each of costs) {
    for (let index = 0; index < sums.length; index++) sums[index]! += each[index]!
  }
  return sums
}

/** Numbers in the reply before the stamps, and between the stamps and the largest costs. */
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

function readFigures(reply: FiguresWire, request: LaneRef): LaneFigures {
  const [nowUs, version, pausedUntilUs, figures, requestsLastMinute] = reply
  const limits = request.limits.map(({ id }, index) => {
    const [limit = 0, used = 0, remaining = 0, waitUs = 0] = figures.slice(index * 4, index * 4 + 4)
    return { id, limit, used, remaining, waitUs }
  })
  return { nowUs, version, pausedUntilUs, limits, requestsLastMinute }
}
