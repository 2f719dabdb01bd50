/**
 * Callers of a downstream with a given error rate, behind guards of several pods that share a memory
 * store, in virtual time. Failures end sooner than successes, as those of an LLM vendor do.
 */
import { createSpillway, type GuardOptions, SpillwayError } from 'spillway'
import { memoryStore } from 'spillway/shared'
import { createRandom, createVirtualClock, sleep } from 'spillway/testing'

export interface Downstream {
  /** Share of the calls that fail, from 0 to 1. */
  errorRate: number
  failureMs: number
  successMs: number
  /** Each latency is drawn from 1/spread to spread times the given one. */
  spread: number
  /** A bad request fails at every attempt; otherwise each attempt is drawn anew. */
  everyAttempt: boolean
  /** Calls do not end before their timeout. */
  hangs?: boolean
}

export interface Run extends Downstream {
  seed: number
  callers: number
  pods: number
  retries: boolean
  breaker: NonNullable<GuardOptions['breaker']>
  timeoutMs: number
  /** All callers start within this time. */
  startWithinMs: number
}

export interface Fleet {
  /** When the breaker first opened; undefined if it has not. */
  openedMs(): number | undefined
  failures(): number
  refused(): number
  /** Replaces how the downstream behaves for calls that begin from now on. */
  become(change: Partial<Downstream>): void
  /** Lets all callers call in a loop for this long, or until the breaker opens. */
  call(forMs: number): Promise<void>
  idle(ms: number): Promise<void>
  nowMs(): number
  close(): Promise<void>
}

export function createFleet(run: Run): Fleet {
  const clock = createVirtualClock({ quick: true })
  const random = createRandom(run.seed)
  const store = memoryStore({ clock })
  const downstream: Downstream = { ...run }
  let openedMs: number | undefined
  let failures = 0
  let refused = 0
  const pods = Array.from({ length: run.pods }, (_, index) => {
    const spillway = createSpillway({ store, clock, random, pod: `pod${index}` })
    const guard = spillway.guard('vendor', {
      breaker: run.breaker,
      timeout: { callMs: run.timeoutMs },
      ...(run.retries && { retry: { attempts: 3 } }),
    })
    guard.breaker?.onChange(({ to }) => {
      if (to === 'open') openedMs ??= clock.now()
    })
    return { spillway, guard }
  })

  const spread = (ms: number) => ms * downstream.spread ** (2 * random() - 1)

  async function callOnce(guard: (typeof pods)[number]['guard']): Promise<void> {
    const bad = random() < downstream.errorRate
    await guard.run(async ({ signal, attempt }) => {
      if (downstream.hangs === true) return sleep(clock, 3_600_000, signal)
      const fails = downstream.everyAttempt || attempt === 1 ? bad : random() < downstream.errorRate
      await sleep(clock, spread(fails ? downstream.failureMs : downstream.successMs), signal)
      if (!fails) return
      failures++
      throw Object.assign(new Error('overloaded'), { status: 500 })
    })
  }

  async function caller(index: number, untilMs: number): Promise<void> {
    const { guard } = pods[index % pods.length] as (typeof pods)[number]
    await sleep(clock, random() * run.startWithinMs)
    while (clock.now() < untilMs && openedMs === undefined) {
      try {
        await callOnce(guard)
      } catch (error) {
        if (!(error instanceof SpillwayError) || error.stage === 'timeout') continue
        refused++
        await sleep(clock, 100)
      }
    }
  }

  return {
    openedMs: () => openedMs,
    failures: () => failures,
    refused: () => refused,
    become: (change) => Object.assign(downstream, change),
    async call(forMs) {
      const untilMs = clock.now() + forMs
      const all = Array.from({ length: run.callers }, (_, index) => caller(index, untilMs))
      const ended = new Promise<void>((resolve) => {
        const stop = sleep(clock, forMs)
        void Promise.race([stop, Promise.all(all)]).then(() => resolve())
      })
      await clock.until(ended)
      if (openedMs === undefined) await clock.until(Promise.all(all))
    },
    idle: (ms) => clock.advance(ms),
    nowMs: () => clock.now(),
    async close() {
      await clock.until(Promise.all(pods.map(({ spillway }) => spillway.close({ graceMs: 0 }))))
      await store.close()
    },
  }
}

export const BREAKER = { failureRate: 0.5, minimumCalls: 10 } as const

/** Limits and minimums of the random runs; the first of each is the default. */
const FAILURE_RATES = [0.5, 0.2, 0.3, 0.7] as const
const MINIMUM_CALLS = [10, 5, 20] as const

/** A run with an error rate of at most 0.6 times the threshold. */
export function drawHealthy(seed: number): Run & { idleFirst: boolean } {
  const random = createRandom(seed)
  const between = (low: number, high: number) => low + (high - low) * random()
  const logBetween = (low: number, high: number) => low * (high / low) ** random()
  const oneOf = (values: readonly number[]) =>
    values[Math.floor(random() * values.length)] as number
  const successMs = logBetween(100, 30_000)
  const failureRate = oneOf(FAILURE_RATES)
  return {
    seed,
    errorRate: between(0, 0.6 * failureRate),
    failureMs: logBetween(1, 1_000),
    successMs,
    spread: random() < 0.5 ? 1 : between(1, 5),
    everyAttempt: random() < 0.5,
    callers: Math.ceil(random() < 0.5 ? between(0, 500) : logBetween(1, 500)),
    pods: Math.ceil(between(0, 8)),
    retries: random() < 0.5,
    breaker: { failureRate, minimumCalls: oneOf(MINIMUM_CALLS) },
    timeoutMs: 180_000,
    startWithinMs: random() < 0.5 ? 0 : between(0, 2_000),
    idleFirst: random() < 0.5,
  }
}
