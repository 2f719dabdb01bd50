/** The limit operations as scripts: how requests are written down and replies are read. */
import type { Keys } from '../keys.js'
import type { LimitSpec } from '../limit-spec.js'
import type { LaneFigures, LaneRef, LimitStore, TakeReply } from '../port.js'
import type { ScriptRunner } from './runner.js'
import { SCRIPTS } from './scripts.gen.js'

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
  /** One argument in JSON: cheaper to send, and to read over there, than many. */
  const input = (request: LaneRef, own: object) => [
    time(),
    JSON.stringify({ v: request.version, l: request.limits.map(writeSpec), ...own }),
  ]

  return {
    async take(request) {
      // The hot one, so it is put together by hand.
      const wishes = writeWishes(request.costs)
      const json = `{"v":${request.version},"l":${writeSpecs(request.limits)},"wishes":[${wishes}]}`
      const reply = await runner.run(SCRIPTS.takePermits, laneKeys(request), [time(), json])
      return readTakeReply(reply as number[], request)
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
    async change(request) {
      const { id = '', limit = 0, forUs = 0 } = request.override ?? {}
      const args = input(request, { id, limit, for_us: forUs })
      return (await runner.run(SCRIPTS.changeLimits, laneKeys(request), args)) as number
    },
    async figures(request) {
      const scriptKeys = [...laneKeys(request), keys.reports(request.guard)]
      const reply = await runner.run(SCRIPTS.readLimits, scriptKeys, input(request, {}))
      return readFigures(reply as FiguresWire, request)
    },
    async report({ guard, pod, requests }) {
      await runner.run(SCRIPTS.reportRequests, [keys.reports(guard)], [time(), pod, requests])
    },
  }
}

/** Those in a row that cost the same go as one: under load nearly all do. */
function writeWishes(all: readonly (readonly number[])[]): string {
  const groups: string[] = []
  let times = 0
  for (const [index, costs] of all.entries()) {
    times++
    const next = all[index + 1]
    if (next !== undefined && costs.every((cost, limit) => cost === next[limit])) continue
    groups.push(`${times},${costs.join()}`)
    times = 0
  }
  return groups.join()
}

/** A limiter sends the same limits with every trip, until they change. */
const written = new WeakMap<readonly LimitSpec[], string>()

function writeSpecs(limits: readonly LimitSpec[]): string {
  const known = written.get(limits)
  if (known !== undefined) return known
  const json = JSON.stringify(limits.map(writeSpec))
  written.set(limits, json)
  return json
}

function writeSpec({ id, algorithm, limit, windowUs, slices, burst, span }: LimitSpec) {
  return [id, ALGORITHM[algorithm], limit, windowUs, slices, burst, span === 'vendor' ? 1 : 0]
}

/** Where the figures of each limit begin in a reply to `take`. */
const FIRST_FIGURE = 5

function readTakeReply(reply: readonly number[], request: LaneRef): TakeReply {
  const [granted, waitUs, paused, nowUs, version] = reply as [
    number,
    number,
    number,
    number,
    number,
  ]
  const { limits } = request
  const figures = (number: number) =>
    reply.slice(FIRST_FIGURE + number * limits.length, FIRST_FIGURE + (number + 1) * limits.length)
  const answer: TakeReply = {
    granted,
    waitUs,
    paused: paused === 1,
    nowUs,
    stamps: figures(0),
    remaining: figures(1),
    capacities: figures(2),
  }
  const restAt = FIRST_FIGURE + 3 * limits.length
  if (version > request.version)
    answer.newer = { version, limits: readNewer(reply, restAt, limits) }
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
    const [limit, used, remaining] = figures.slice(index * 3, index * 3 + 3) as [
      number,
      number,
      number,
    ]
    return { id, limit, used, remaining }
  })
  return { nowUs, version, pausedUntilUs, limits, requestsLastMinute }
}
