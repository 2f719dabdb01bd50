/** The limit operations as scripts: how requests are written down and replies are read. */
import type { Keys } from '../keys.js'
import type { LimitSpec } from '../limit-spec.js'
import type { LaneFigures, LaneRef, LimitStore, TakeReply } from '../port.js'
import type { ScriptRunner } from './runner.js'
import { SCRIPTS } from './scripts.gen.js'

type Argument = string | number

/** What the scripts call the algorithms. */
const ALGORITHM = {
  'sliding-window': 1,
  'token-bucket': 2,
  'leaky-bucket': 3,
  'fixed-window': 4,
} as const

/** `time` replaces the server's, for tests that feed twins the same history. */
export function createRedisLimits(
  runner: ScriptRunner,
  keys: Keys,
  time: () => string = () => '',
): LimitStore {
  const laneKeys = ({ guard, lane }: LaneRef) => [keys.lane(guard, lane), keys.guard(guard)]
  const head = ({ limits, version }: LaneRef): Argument[] => {
    const args: Argument[] = [time(), version, limits.length]
    for (const spec of limits) writeSpec(args, spec)
    return args
  }

  return {
    async take(request) {
      const args = head(request)
      args.push(request.costs.length)
      for (const costs of request.costs) for (const cost of costs) args.push(cost)
      const reply = await runner.run(SCRIPTS.takePermits, laneKeys(request), args)
      return readTakeReply(reply as TakeWire, request)
    },
    async settle(request) {
      const { guard, pod, sequence, settlements } = request
      const args = head(request)
      args.push(sequence, settlements.length)
      for (const { limit, stamp, delta } of settlements) args.push(limit + 1, stamp, delta)
      const scriptKeys = [...laneKeys(request), keys.sequence(guard, pod)]
      await runner.run(SCRIPTS.settlePermits, scriptKeys, args)
    },
    async feedback(request) {
      const { grantedUs, throttled, pauseUs = -1, basePauseUs, maxPauseUs, left } = request
      const args = head(request)
      args.push(grantedUs, throttled ? 1 : 0, pauseUs, basePauseUs, maxPauseUs, left.length)
      for (const { limit, remaining, resetUs } of left) args.push(limit + 1, remaining, resetUs)
      return (await runner.run(SCRIPTS.applyFeedback, laneKeys(request), args)) as number
    },
    async change(request) {
      const { id = '', limit = 0, forUs = 0 } = request.override ?? {}
      const args = [...head(request), id, limit, forUs]
      return (await runner.run(SCRIPTS.changeLimits, laneKeys(request), args)) as number
    },
    async figures(request) {
      const scriptKeys = [...laneKeys(request), keys.reports(request.guard)]
      const reply = await runner.run(SCRIPTS.readLimits, scriptKeys, head(request))
      return readFigures(reply as FiguresWire, request)
    },
    async report({ guard, pod, requests }) {
      await runner.run(SCRIPTS.reportRequests, [keys.reports(guard)], [time(), pod, requests])
    },
  }
}

function writeSpec(args: Argument[], spec: LimitSpec): void {
  const { id, algorithm, limit, windowUs, slices, burst, span } = spec
  const vendor = span === 'vendor' ? 1 : 0
  args.push(id, ALGORITHM[algorithm], limit, windowUs, slices, burst, vendor)
}

type TakeWire = [
  granted: number,
  waitUs: number,
  paused: number,
  nowUs: number,
  version: number,
  stamps: number[],
  remaining: number[],
  newer: number[],
]

function readTakeReply(reply: TakeWire, request: LaneRef): TakeReply {
  const [granted, waitUs, paused, nowUs, version, stamps, remaining, newer] = reply
  const answer = { granted, waitUs, paused: paused === 1, nowUs, stamps, remaining }
  if (version <= request.version) return answer
  const limits = request.limits.map((spec, index) => {
    const [limit, windowUs, burst, slices] = newer.slice(index * 4, index * 4 + 4) as [
      number,
      number,
      number,
      number,
    ]
    return { ...spec, limit, windowUs, burst, slices }
  })
  return { ...answer, newer: { version, limits } }
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
    const [limit, used, remaining] = figures.slice(index * 3, index * 3 + 3) as [
      number,
      number,
      number,
    ]
    return { id, limit, used, remaining }
  })
  return { nowUs, version, pausedUntilUs, limits, requestsLastMinute }
}
