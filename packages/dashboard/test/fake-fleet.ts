/** A simulated fleet with moving figures that are identical in every run. */
import { createRandom } from '../../spillway/src/core/random.js'
import { ORDER } from '../../spillway/src/guard/pipeline/stages.js'
import type { Act } from '../src/wire/acts.js'
import type { ByPriority, StoreStatus } from '../src/wire/common-types.js'
import type { Decision } from '../src/wire/decisions.js'
import type { Fleet } from '../src/wire/fleet.js'
import type { BreakerTick, GuardsTick, GuardTick, LaneTick } from '../src/wire/guards.js'
import type { DemoState, GuardCard, Hello } from '../src/wire/hello.js'
import type { History } from '../src/wire/history.js'
import type { Messages } from '../src/wire/messages.js'
import type { DeadLetters, QueuesTick } from '../src/wire/queues.js'

export interface FakeFleetOptions {
  pods?: number
  guards?: number
  /** Names of the first guards, users and pods instead of the usual ones. */
  names?: string[]
  /** Decisions per second; all of them are sent. */
  decisionRate?: number
  lanes?: number
  queues?: number
  /** Offers the switches of the demo. */
  demo?: boolean
  /** Adds an hour of history before the page is opened. */
  past?: boolean
}

const VENDORS = [
  'openai',
  'anthropic',
  'mistral',
  'payments',
  'geocoder',
  'mail',
  'search',
  'images',
]
const LANES = ['gpt-4o', 'gpt-4o-mini', 'o3', 'embeddings']
const USERS = ['ann', 'bob', 'carol', 'dave', 'erin', 'frank', 'grace']
const SECONDS = 3_600

export class FakeFleet {
  store: StoreStatus = 'shared'
  readonly #random = createRandom(7)
  readonly #options: Required<FakeFleetOptions>
  readonly #cards: GuardCard[]
  readonly #breakers = new Map<string, BreakerTick>()
  /** Lanes without calls. */
  readonly #idle = new Set<string>()
  #demo: DemoState = { load: true, broken: false }
  #turn = 0
  #id = 0
  #storeSinceAt = Date.now()

  constructor(options: FakeFleetOptions) {
    this.#options = {
      pods: 3,
      guards: 3,
      names: [],
      decisionRate: 40,
      lanes: 2,
      queues: 1,
      demo: true,
      past: true,
      ...options,
    }
    const { guards, names } = this.#options
    this.#cards = Array.from({ length: guards }, (_, index) =>
      cardOf(names[index] ?? VENDORS[index] ?? `vendor-${index}`),
    )
  }

  get names(): string[] {
    return this.#cards.map(({ name }) => name)
  }

  tick(): void {
    this.#turn++
  }

  setStore(word: StoreStatus): void {
    this.store = word
    this.#storeSinceAt = Date.now()
  }

  /**
   * Changes the state, which is sent with the next tick. Returns the message that announces it at
   * once.
   */
  setBreaker(guard: string, to: BreakerTick['state']): Messages['transition'] {
    const lane = laneName(0)
    const breaker = this.#breaker(guard, lane)
    const change = { at: Date.now(), guard, lane, from: breaker.state, to }
    const { untilMs: _, ...rest } = breaker
    this.#breakers.set(`${guard} ${lane}`, {
      ...rest,
      state: to,
      ...(to !== 'closed' && { untilMs: 24_000 }),
      ...(to === 'open' && { cause: '31 failures in a row' }),
      failures: to === 'closed' ? 2 : 31,
      probes: to === 'half-open' ? 2 : 0,
      successes: to === 'half-open' ? 1 : 0,
      timeline: [...breaker.timeline, change],
    })
    return change
  }

  /** From now on this lane has no calls. */
  setIdle(lane: string): void {
    this.#idle.add(lane)
  }

  switchDemo(act: Act & { act: 'demo' }): DemoState {
    const { load = this.#demo.load, broken = this.#demo.broken } = act
    this.#demo = { load, broken }
    return this.#demo
  }

  hello(acts: Hello['acts']): Hello {
    return {
      wire: 1,
      boot: 'fake',
      hasPeers: false,
      at: Date.now(),
      pod: this.#pod(0),
      version: '0.1.0',
      stages: ORDER,
      guards: this.#cards,
      jobQueues: Array.from({ length: this.#options.queues }, (_, index) => `queue-${index}`),
      acts,
      may: [
        ...(['isolate', 'release', 'reset', 'pause', 'limit'] as const),
        ...(['release-key', 'drain', 'replay', 'demo'] as const),
      ],
      demo: this.#options.demo ? this.#demo : undefined,
      keeps: { fineStepMs: 1_000, finePoints: 300, coarseStepMs: 10_000, coarsePoints: 360 },
    }
  }

  *history(): Generator<History> {
    if (!this.#options.past) return
    const toAt = Math.floor(Date.now() / 10_000) * 10_000
    const shape = (second: number, scale: number) =>
      Math.round(scale * (1 + 0.4 * Math.sin(second / 300) + 0.25 * this.#random()))
    for (const [stepMs, points] of [
      [10_000, 360],
      [1_000, 300],
    ] as const) {
      const fromAt = toAt - points * stepMs
      const column = (of: (second: number) => number) =>
        Array.from({ length: points }, (_, index) =>
          of(SECONDS - (points - index) * (stepMs / 1_000)),
        )
      yield {
        stepMs,
        fromAt,
        columns: {
          pressure: column((s) => 0.3 + 0.2 * Math.sin(s / 200)),
          inFlight: column((s) => shape(s, 60)),
          waiting: column((s) => Math.max(0, shape(s, 20) - 18)),
          pods: column(() => this.#options.pods),
          fleetCalls: column((s) => shape(s, 360)),
          fleetRefused: column((s) => Math.max(0, shape(s, 120) - 120)),
          fleetInFlight: column((s) => shape(s, 90)),
          fleetWaiting: column((s) => Math.max(0, shape(s, 20) - 18)),
        },
      }
      for (const { name } of this.#cards) {
        yield {
          guard: name,
          stepMs,
          fromAt,
          columns: {
            calls: column((s) => shape(s, 120)),
            refused: column((s) => Math.max(0, shape(s, 40) - 40)),
            failures: column((s) => Math.max(0, shape(s, 8) - 8)),
            p50Ms: column((s) => shape(s, 180)),
            p99Ms: column((s) => shape(s, 700)),
          },
        }
      }
    }
  }

  fleet(): Fleet {
    const { pods } = this.#options
    const degraded =
      this.store === 'unreachable' || this.store === 'untrusted' || this.store === 'off'
    return {
      at: Date.now(),
      store: {
        status: this.store,
        degraded,
        sinceAt: this.#storeSinceAt,
        problems: degraded ? ['openai: the store has not answered for 3 seconds'] : [],
      },
      names: this.names,
      pods: Array.from({ length: pods }, (_, index) => {
        const pressure = 0.35 + 0.5 * this.#random()
        return {
          pod: this.#pod(index),
          ageMs: index === 0 ? 0 : 400 + 500 * this.#random(),
          state: 'up' as const,
          version: '0.1.0',
          upMs: 3_725_000 + this.#turn * 1_000,
          pressure,
          pressureBy: 'cpu',
          loopMs: 1 + 3 * this.#random(),
          loopBusy: 0.2 + 0.4 * this.#random(),
          memoryMb: 96 + Math.round(20 * this.#random()),
          inFlight: 20 + Math.round(30 * this.#random()),
          waiting: Math.round(8 * this.#random()),
          store: this.store,
          guards: this.#cards.map(({ name }, place) => {
            const calls = 90 + Math.round(40 * this.#random())
            return [
              place,
              calls,
              Math.round(12 * this.#random()),
              Math.round(20 * this.#random()),
              Math.round(4 * this.#random()),
              codeOf(this.#breaker(name, laneName(0)).state),
              calls,
            ]
          }),
        }
      }),
      podsLeftOut: 0,
    }
  }

  guards(): GuardsTick {
    return { at: Date.now(), sinceMs: 1_000, guards: this.#cards.map((card) => this.#guard(card)) }
  }

  #guard({ name }: GuardCard): GuardTick {
    const random = this.#random
    const count = (top: number) => Math.round(top * random())
    const open = this.#breaker(name, laneName(0)).state === 'open'
    const calls = 110 + count(30)
    return {
      name,
      flow: {
        calls,
        attempts: calls - 10,
        outcomes: { success: calls - 16, failure: 3, slow: 1, throttled: 1, ignored: 1 },
        refused: [
          { stage: 'shed', code: 'SHED', count: count(4) },
          { stage: 'user-limit', code: 'USER_LIMITED', count: 4 + count(8) },
          { stage: 'queue', code: 'QUEUE_TIMEOUT', count: count(3) },
          { stage: 'vendor-limit', code: 'VENDOR_LIMITED', count: 8 + count(6) },
          ...(open ? [{ stage: 'breaker', code: 'CIRCUIT_OPEN', count: 60 } as const] : []),
        ],
      },
      queue: {
        waiting: 12 + count(20),
        size: 450,
        oldestMs: 300 + count(900),
        byPriority: [0, 3, 9, count(20)],
        codel: false,
      },
      slots: { active: 30 + count(18), limit: 50 },
      shed: {
        pressure: 0.3 + 0.4 * random(),
        overload: 0,
        signals: { cpu: 0.4, eventLoop: 0.2, queue: 0.1 },
      },
      retry: { ratio: 0.06 + 0.04 * random(), budget: 0.2, allowed: 40 },
      latency: {
        count: 900,
        p50Ms: 160 + count(40),
        p90Ms: 380 + count(60),
        p99Ms: 800 + count(200),
      },
      queueWait: { count: 900, p50Ms: 0.4, p90Ms: 80 + count(20), p99Ms: 600 + count(200) },
      fallbacks: [{ step: 'anthropic', reason: 'CIRCUIT_OPEN', count: 12 }],
      estimates: [{ unit: 'tokens', calls: 5_200, ratio: 1.04, near: 0.93 }],
      lanes: Array.from({ length: this.#options.lanes }, (_, index) =>
        this.#lane(name, laneName(index)),
      ),
      keys: [
        {
          key: 'main',
          state: 'quarantined',
          reason: 'quota-exhausted',
          untilMs: 2_500_000 - 1_000 * count(100),
        },
        { key: 'batch', state: 'probing', reason: 'invalid-key' },
        { key: 'spare', state: 'usable' },
      ],
      store: this.store,
      closed: false,
    }
  }

  #lane(guard: string, lane: string): LaneTick {
    const tokens = Math.round(20_000 * this.#random())
    const scope = this.store === 'shared' ? 'shared' : 'local'
    return {
      lane,
      ...(this.#idle.has(lane)
        ? { flow: { calls: 0, refused: [] }, waiting: 0 }
        : {
            flow: {
              calls: 60,
              refused: [{ stage: 'vendor-limit', code: 'VENDOR_LIMITED', count: 4 }],
            },
            waiting: Math.round(10 * this.#random()),
          }),
      breaker: this.#idle.has(lane)
        ? { ...this.#breaker(guard, lane), failures: 0, slow: 0 }
        : this.#breaker(guard, lane),
      limits: [
        {
          id: 'requests',
          label: 'requests',
          limit: 500,
          configured: 800,
          used: 388,
          remaining: 112,
          ageMs: 240,
          scope,
        },
        {
          id: 'tokens',
          label: 'tokens',
          limit: 90_000,
          used: 90_000 - tokens,
          remaining: tokens,
          nextFreeMs: 1_400,
          ageMs: 240,
          scope,
        },
      ],
    }
  }

  #breaker(guard: string, lane: string): BreakerTick {
    const key = `${guard} ${lane}`
    const known = this.#breakers.get(key)
    if (known !== undefined) return known
    const made: BreakerTick = {
      state: 'closed',
      calls: 64,
      failures: 3,
      slow: 1,
      consecutiveFailures: 0,
      probes: 0,
      successes: 0,
      selfIsolated: false,
      ageMs: 120,
      timeline: [],
    }
    this.#breakers.set(key, made)
    return made
  }

  decisions(forMs: number): Messages['decisions'] {
    const count = Math.round((this.#options.decisionRate * forMs) / 1_000)
    const records = Array.from({ length: count }, () => this.#decision())
    return { seen: count, records }
  }

  #decision(): Decision {
    const guard = this.names[Math.floor(this.#random() * this.names.length)] ?? 'openai'
    const user = this.#options.names[0] ?? USERS[Math.floor(this.#random() * USERS.length)] ?? 'ann'
    const refused = this.#random() < 0.3
    const base = {
      id: ++this.#id,
      requestId: `req-${this.#id}`,
      pod: 'pod-1',
      at: Date.now(),
      guard,
      lane: laneName(Math.floor(this.#random() * this.#options.lanes)),
      user,
      tier: 'free',
      priority: 'normal',
      attempts: 1,
      traced: true,
      sharedAgeMs: 180,
    } as const
    const passed = (stage: Decision['stage'], attempt: number, atMs: number) =>
      ({ stage, attempt, atMs, verdict: 'passed', scope: 'local' }) as const
    if (refused) {
      return {
        ...base,
        code: 'USER_LIMITED',
        stage: 'user-limit',
        scope: 'shared',
        tookMs: 0.8,
        retryAfterMs: 1_200,
        why: `${user} has used 60 of 60 requests in 1 min`,
        remedy: `A place comes free in 1.2 s; or a higher limit for the tier “free”.`,
        numbers: { limit: 60, used: 60, windowMs: 60_000, waitMs: 1_200 },
        path: [
          passed('shed', 0, 0),
          {
            stage: 'user-limit',
            attempt: 0,
            atMs: 0.8,
            verdict: 'refused',
            scope: 'shared',
            numbers: { limit: 60, used: 60 },
          },
        ],
      }
    }
    return {
      ...base,
      code: 'OK',
      stage: 'call',
      scope: 'local',
      tookMs: 120 + Math.round(200 * this.#random()),
      why: 'answered at the first attempt',
      numbers: {},
      path: [
        passed('shed', 0, 0),
        passed('user-limit', 0, 0.6),
        { ...passed('queue', 0, 40), verdict: 'waited', numbers: { waitedMs: 39.4 } },
        passed('breaker', 1, 40),
        passed('vendor-limit', 1, 41),
        passed('concurrency', 1, 41),
        passed('timeout', 1, 41),
        { ...passed('call', 1, 200), verdict: 'ended', numbers: { outcome: 'success' } },
      ],
    }
  }

  queues(): QueuesTick {
    const count = (top: number) => Math.round(top * this.#random())
    return {
      at: Date.now(),
      jobQueues: Array.from({ length: this.#options.queues }, (_, index) => ({
        name: this.#options.names[index] ?? `queue-${index}`,
        guard: this.names[0] ?? '',
        lane: laneName(0),
        waiting: 320 + count(40),
        delayed: 12,
        active: 8,
        done: 18_204 + this.#turn * 7,
        dead: 3,
        paused: false,
        oldestMs: 42_000 + count(900),
        expiredLeases: 1,
        byPriority: [2, 40, 230, 48] satisfies ByPriority as ByPriority,
        byTenant: {
          top: [...this.#options.names, ...USERS, ''].slice(0, 8).map(depthOf),
          others: 4,
          othersWaiting: 9,
          exact: index === 0,
        },
      })),
    }
  }

  deadLetters(): DeadLetters {
    return {
      queue: 'queue-0',
      from: 0,
      letters: ['a7f3', 'b812', 'c9d0'].map((id, index) => ({
        id: this.#options.names[index] ?? id,
        priority: 'normal',
        tenant: USERS[index] ?? 'ann',
        attempt: 5,
        attempts: 5,
        ageMs: 3_600_000 * (index + 1),
      })),
    }
  }

  #pod(index: number): string {
    return (
      this.#options.names[index] ??
      `pod-${String.fromCharCode(97 + (index % 26))}${index >= 26 ? index : ''}`
    )
  }
}

function depthOf(tenant: string, place: number) {
  const byPriority: ByPriority = [
    place === 0 ? 2 : 0,
    30 - 4 * place,
    70 - 9 * place,
    16 - 2 * place,
  ]
  return { tenant, byPriority, waiting: byPriority.reduce((sum, each) => sum + each, 0) }
}

function laneName(index: number): string {
  return LANES[index] ?? `lane-${index}`
}

function codeOf(state: BreakerTick['state']): 0 | 1 | 2 | 3 {
  return ({ closed: 0, 'half-open': 1, open: 2, isolated: 3 } as const)[state]
}

function cardOf(name: string): GuardCard {
  return {
    name,
    on: [
      'shed',
      'user-limit',
      'queue',
      'breaker',
      'vendor-limit',
      'concurrency',
      'timeout',
      'retry',
    ],
    shed: { maxQueue: 400 },
    userLimits: [{ per: 'user', limit: 60, windowMs: 60_000 }],
    queue: { size: 450, timeoutMs: 5_000 },
    breaker: {
      failureRate: 0.5,
      minimumCalls: 10,
      windowMs: 30_000,
      openMs: 30_000,
      probes: 3,
      successes: 2,
      per: 'lane',
      shadow: false,
    },
    limits: [
      { id: 'requests', unit: 'requests', limit: 500, windowMs: 60_000, per: 'lane' },
      { id: 'tokens', unit: 'tokens', limit: 90_000, windowMs: 60_000, per: 'lane' },
    ],
    concurrency: { limit: 50, adaptive: false },
    timeout: { callMs: 30_000, firstByteMs: 10_000, idleMs: 15_000 },
    retry: { attempts: 3, budget: 0.2 },
    fallbacks: ['anthropic'],
  }
}
