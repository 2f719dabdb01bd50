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
  /** When a breaker that counts only finished calls, without their retries, would have opened. */
  finishedOnlyMs(): number | undefined
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
  const finished = new FinishedCalls(run.breaker as Limits)
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
        finished.add(false, clock.now())
      } catch (error) {
        if (!(error instanceof SpillwayError) || error.stage === 'timeout') {
          finished.add(true, clock.now())
          continue
        }
        refused++
        await sleep(clock, 100)
      }
    }
  }

  return {
    openedMs: () => openedMs,
    finishedOnlyMs: () => finished.openedMs,
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

interface Limits {
  failureRate: number
  minimumCalls: number
}

const WINDOW_MS = 30_000

/** The failure rate of finished calls, for comparison. */
class FinishedCalls {
  readonly #limits: Limits
  #ends: { failed: boolean; atMs: number }[] = []
  #failures = 0
  openedMs: number | undefined

  constructor(limits: Limits) {
    this.#limits = limits
  }

  add(failed: boolean, nowMs: number): void {
    this.#ends.push({ failed, atMs: nowMs })
    if (failed) this.#failures++
    const first = this.#ends.findIndex(({ atMs }) => nowMs - atMs < WINDOW_MS)
    for (const end of this.#ends.splice(0, first)) if (end.failed) this.#failures--
    const { failureRate, minimumCalls } = this.#limits
    const calls = this.#ends.length
    if (calls >= minimumCalls && this.#failures / calls >= failureRate) this.openedMs ??= nowMs
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
    callers: Math.floor(random() < 0.5 ? between(1, 501) : logBetween(1, 501)),
    pods: Math.ceil(between(0, 8)),
    retries: random() < 0.5,
    breaker: { failureRate, minimumCalls: oneOf(MINIMUM_CALLS) },
    timeoutMs: 180_000,
    startWithinMs: random() < 0.5 ? 0 : between(0, 2_000),
    idleFirst: random() < 0.5,
  }
}

/** A run of callers that are enough for `minimumCalls` at once, of a downstream that is dead. */
export function drawDead(seed: number): Run {
  const { breaker, ...run } = drawHealthy(seed)
  const { minimumCalls } = breaker as Limits
  const random = createRandom(seed)
  const failureRate = [0.05, 0.3, 0.5, 0.9][Math.floor(4 * random())] as number
  const successMs = 200 + 3_000 * random()
  return {
    ...run,
    errorRate: 1,
    failureMs: 5,
    successMs,
    callers: 2 * minimumCalls + Math.floor(100 * random()),
    retries: false,
    breaker: { failureRate, minimumCalls },
    timeoutMs: 10_000 + 2 * successMs,
  }
}
