/**
 * Heartbeats, commands to pods and pulses exist twice, in TypeScript and in Lua. Both run the same random histories: pods
 * that join, leave and stop, commands that end, a store that loses its data or a part of it, and clock jumps. They have
 * to give the same replies.
 */

import { describe, expect, it } from 'vitest'
import { createKeys } from '../../src/store/keys.js'
import { createMemoryPods } from '../../src/store/memory/memory-pods.js'
import type { PulseReply } from '../../src/store/port.js'
import { type PulseState, pulse, type Shares } from '../../src/store/pulse.js'
import { createRedisPods } from '../../src/store/redis/operations/redis-pods.js'
import { createRedisPulses } from '../../src/store/redis/operations/redis-pulses.js'
import { fc } from '../fast-check.js'
import { ALL_HISTORIES, type TwinRedis } from './twin-redis.js'

const START_US = 1_900_000_000_000_000
const GUARD = 'g:{1}%'
/** Names that a table, an object or a key might take for something else. */
const PODS = ['1', 'constructor', '__proto__', 'a b:{c}%'] as const
/** How long a pod lives after a heartbeat, and how long a command to it is kept. */
const LIVES_US = [10_000_000, 60_000_000] as const
/** Pauses at the edges of the rules, to the microsecond: late pulse, end of a share or command, separate loss. */
const EDGES_US = [2_500_000, 10_000_000, 30_000_000, 60_000_000]
const edges = EDGES_US.flatMap((edge) => [edge - 1, edge, edge + 1])
/** How far the clock is set back: the largest accepted difference, and a microsecond more. */
const SET_BACK_US = [1_000_000, 20_000_000, 120_000_000]
const setBacks = SET_BACK_US.flatMap((edge) => [-edge, -edge - 1])

const pause = fc.oneof(
  { weight: 40, arbitrary: fc.integer({ min: 0, max: 500_000 }) },
  { weight: 8, arbitrary: fc.constantFrom(...edges) },
  { weight: 2, arbitrary: fc.constantFrom(...setBacks) },
)
const life = fc.constantFrom(...LIVES_US)
const operation = fc.oneof(
  { weight: 6, arbitrary: fc.record({ kind: fc.constant('beat' as const), lifeUs: life }) },
  { weight: 3, arbitrary: fc.record({ kind: fc.constant('send' as const), forUs: life }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('leave' as const) }) },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant('list' as const) }) },
  {
    weight: 12,
    arbitrary: fc.record({
      kind: fc.constant('pulse' as const),
      part: fc.constantFrom('joined', 'joined', 'joined', 'untrusted', 'guest', 'gone'),
      /** A pod that has just started knows no epoch; another one missed the last pulses. */
      knows: fc.constantFrom('last', 'own', 'own', 'nothing'),
    }),
  },
  /** The store loses everything, or its writes since a copy was made. */
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('empty' as const) }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('copy' as const) }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('restore' as const) }) },
)
const step = fc.record({ pause, pod: fc.constantFrom(...PODS), operation })
type Step = typeof step extends fc.Arbitrary<infer T> ? T : never

let histories = 0
const reached = {
  live: 0,
  received: 0,
  commandOver: 0,
  noSuchPod: 0,
  late: 0,
  forgotten: 0,
  empty: 0,
  behind: 0,
  noticedLater: 0,
  ranked: 0,
}

export function claimPodTwins(twin: TwinRedis, runs = ALL_HISTORIES): void {
  describe('Lua scripts of pods and pulses', () => {
    it(`scripts of pods and pulses reply like their TypeScript versions over ${100 * runs} steps`, async () => {
      let steps = 0
      await fc.assert(
        fc.asyncProperty(
          fc.array(step, { minLength: 100, maxLength: 160, size: 'max' }),
          async (plan) => {
            await replay(twin, plan)
            steps += plan.length
          },
        ),
        { numRuns: runs },
      )
      expect(steps).toBeGreaterThanOrEqual(100 * runs)
      if (runs < ALL_HISTORIES) return
      // Makes sure that the histories reach every interesting state.
      for (const [what, times] of Object.entries(reached)) {
        expect(times, what).toBeGreaterThan(runs / 4)
      }
    })

    it('the list of pods in Redis outlives its last pod, and their commands last as long as each may', async () => {
      const keys = createKeys(`o${histories++}-`)
      const pods = createRedisPods(twin.runner, keys, () => String(START_US))
      const lifeMs = async (key: string) => Number(await twin.servers.send('PTTL', key))
      await pods.beat({ group: GUARD, pod: 'a', lifeUs: 60_000_000, snapshot: '' })
      await pods.beat({ group: GUARD, pod: 'b', lifeUs: 10_000_000, snapshot: '' })
      // Real time passes between the script and the question.
      expect(await lifeMs(keys.pods(GUARD))).toBeGreaterThan(60_000)
      await pods.sendCommand({ group: GUARD, pod: 'a', forUs: 50_000_000, command: 'x' })
      await pods.sendCommand({ group: GUARD, pod: 'b', forUs: 5_000_000, command: 'x' })
      expect(await lifeMs(keys.podCommands(GUARD))).toBeGreaterThan(40_000)
    })

    it('scripts of pods and pulses leave no key without an expiry', async () => {
      const { count, endless } = await twin.keys()
      expect(count).toBeGreaterThan(0)
      expect(endless).toEqual([])
    })
  })
}

async function replay(twin: TwinRedis, plan: Step[]): Promise<void> {
  let nowUs = START_US
  const keys = createKeys(`o${histories++}-`)
  const time = () => String(nowUs)
  const redisPods = createRedisPods(twin.runner, keys, time)
  const redisPulses = createRedisPulses(twin.runner, keys, time)
  const memoryPods = createMemoryPods(() => nowUs)
  const guard: { state: PulseState | undefined; shares: Shares } = {
    state: undefined,
    shares: new Map(),
  }
  let copy: { state: PulseState; record: string } | undefined
  let epochs = 0
  /** The last pulse reply of each pod; `last` is the newest of any pod. */
  const known = new Map<string, PulseReply>()
  let last: PulseReply | undefined
  const epochKey = keys.epoch(GUARD)
  const { send } = twin.servers
  /** When the last command to each pod ends. */
  const commandEnds = new Map<string, number>()

  for (const { pause: howLong, pod, operation: op } of plan) {
    nowUs += howLong
    switch (op.kind) {
      case 'beat': {
        const alive = await memoryPods.list({ group: GUARD })
        const isAlive = alive.some((each) => each.pod === pod)
        const beat = { group: GUARD, pod, lifeUs: op.lifeUs, snapshot: `at\n${nowUs}` }
        const reply = await memoryPods.beat(beat)
        expect(await redisPods.beat(beat)).toEqual(reply)
        if (reply.live > 1) reached.live++
        if (reply.command !== '') reached.received++
        if (isAlive && (commandEnds.get(pod) ?? nowUs) < nowUs) reached.commandOver++
        break
      }
      case 'send': {
        const request = { group: GUARD, pod, forUs: op.forUs, command: `do {"ü"}\nat ${nowUs}` }
        const sent = await memoryPods.sendCommand(request)
        expect(await redisPods.sendCommand(request)).toBe(sent)
        if (sent) commandEnds.set(pod, nowUs + op.forUs)
        else reached.noSuchPod++
        break
      }
      case 'leave':
        await memoryPods.leave({ group: GUARD, pod })
        await redisPods.leave({ group: GUARD, pod })
        break
      case 'list': {
        const records = await memoryPods.list({ group: GUARD })
        expect(await redisPods.list({ group: GUARD })).toEqual(records)
        break
      }
      case 'pulse': {
        const belief = { last, own: known.get(pod), nothing: undefined }[op.knows]
        const request = {
          guard: GUARD,
          pod,
          part: op.part,
          epoch: belief?.epoch ?? '',
          count: belief?.count ?? 0,
          fresh: `epoch-${++epochs}`,
        } as const
        const before = { lostUs: guard.state?.lostUs, epoch: guard.state?.epoch }
        const shares = guard.shares.size
        const { state, reply } = pulse(guard.state, guard.shares, request, '', nowUs)
        guard.state = state
        expect(await redisPulses.pulse(request)).toEqual(reply)
        known.set(pod, reply)
        last = reply
        if (reply.joined < reply.pods) reached.late++
        if (guard.shares.size < shares && op.part !== 'gone') reached.forgotten++
        if (before.epoch === undefined && reply.lostUs > 0) reached.empty++
        if (before.epoch !== undefined && before.epoch !== reply.epoch) reached.behind++
        if (before.epoch === reply.epoch && before.lostUs === 0 && reply.lostUs > 0)
          reached.noticedLater++
        if (reply.rank > 0) reached.ranked++
        break
      }
      case 'empty':
        guard.state = undefined
        guard.shares.clear()
        await send('DEL', epochKey, keys.shares(GUARD))
        break
      case 'copy':
        if (guard.state === undefined) break
        copy = { state: { ...guard.state }, record: String(await send('GET', epochKey)) }
        break
      case 'restore':
        if (copy === undefined) break
        guard.state = { ...copy.state }
        await send('SET', epochKey, copy.record, 'PX', '300000')
    }
  }
}
