/**
 * A refused call takes nothing: whatever stage refuses it, everything taken before is returned.
 * Tested for every refusal of every stage and for every stage that grants something.
 */
import { describe, expect, it } from 'vitest'
import { SpillwayError, type Stage } from '../src/core/errors.js'
import type { GuardOptions } from '../src/guard/options.js'
import { ORDER } from '../src/guard/pipeline/stages.js'
import type { RunOptions } from '../src/guard/run-options.js'
import {
  type Call,
  createGuardPod,
  createJob,
  fateOf,
  type GuardPod,
  vendorError,
  type Where,
} from './guard-pod.js'

const USER_LIMIT = 3
const VENDOR_LIMIT = 20
const USER_WINDOW_MS = 300_000
const PACE = 10
const PACE_WINDOW_MS = 600_000
const SLOTS = 2
const PLACES = 3

let shedding = false

const OPTIONS: GuardOptions = {
  shed: { when: () => shedding },
  userLimits: [{ per: 'user', limit: USER_LIMIT, windowMs: USER_WINDOW_MS }],
  queue: { size: PLACES, timeoutMs: '5s', targetMs: '100ms' },
  breaker: { consecutiveFailures: 1, openMs: '10s', probes: 1, successes: 1, rampMs: 0 },
  limits: [{ limit: VENDOR_LIMIT, windowMs: '10h' }],
  pace: { limit: PACE, windowMs: PACE_WINDOW_MS },
  concurrency: { limit: SLOTS, graceMs: '1s' },
  timeout: { callMs: '60s' },
}

const { queue: _, ...NO_QUEUE } = OPTIONS
const closed = { outage: 'refuse' } as const
const CLOSED_USERS: GuardOptions = {
  ...OPTIONS,
  userLimits: [{ per: 'user', limit: USER_LIMIT, windowMs: USER_WINDOW_MS, ...closed }],
}
const CLOSED_LIMITS: GuardOptions = {
  ...OPTIONS,
  limits: [{ limit: VENDOR_LIMIT, windowMs: '10h', ...closed }],
}

const THROTTLED: GuardOptions = {
  ...OPTIONS,
  throttle: { k: 1, windowMs: '60s', minimumCalls: 4 },
}

interface Scene extends GuardPod {
  /** Makes the circuit half-open with one probe permit, if the test asks for it. */
  halfOpen(): Promise<void>
  /** Takes all slots. */
  occupy(): Promise<ReturnType<typeof createJob>[]>
  /** The call that will be refused. */
  victim(options?: RunOptions): Call
}

interface Refusal {
  options?: GuardOptions
  where?: Where
  /**
   * Sets up the obstacle, makes the call and waits for its end. Returns the function that removes
   * the obstacle.
   */
  play(scene: Scene): Promise<{ call: Call; undo: () => unknown }>
  /** The call had begun, so what calls use up is used up. */
  ran?: true
  /** The refund could not reach the store. */
  refundLost?: true
  /** Every random number that is drawn. Default: those of a seed. */
  random?: number
  /** Whether the circuit is always or never half-open in this case. */
  halfOpen?: 'always' | 'never'
}

/** By stage and code, as in the table of stages. */
const REFUSALS: Record<string, Refusal> = {
  'shed SHED': {
    async play({ clock, halfOpen, victim }) {
      await halfOpen()
      shedding = true
      const call = victim()
      await clock.settle()
      return { call, undo: () => (shedding = false) }
    },
  },
  'user-limit USER_LIMITED': {
    async play({ clock, quick, halfOpen, victim }) {
      for (let i = 0; i < USER_LIMIT; i++) await clock.until(quick({ user: 'victim' }).promise)
      await halfOpen()
      const call = victim()
      await clock.until(call.promise)
      // Until the user limit is full again.
      return { call, undo: () => clock.advance(USER_WINDOW_MS) }
    },
  },
  'user-limit STORE_UNAVAILABLE': {
    options: CLOSED_USERS,
    where: 'remote',
    async play({ clock, connection, halfOpen, victim }) {
      await halfOpen()
      connection?.goDown()
      const call = victim()
      await clock.until(call.promise)
      return { call, undo: () => connection?.comeBack() }
    },
  },
  'queue QUEUE_FULL': {
    async play({ clock, run, occupy, halfOpen, victim }) {
      const jobs = await occupy()
      await halfOpen()
      const abort = new AbortController()
      const { signal } = abort
      for (let i = 0; i < PLACES; i++) run(() => 'waited', { signal })
      const call = victim()
      await clock.until(call.promise)
      const undo = () => {
        abort.abort()
        finish(jobs)
      }
      return { call, undo }
    },
  },
  'queue QUEUE_TIMEOUT': {
    async play({ clock, occupy, halfOpen, victim }) {
      const jobs = await occupy()
      await halfOpen()
      const call = victim()
      await clock.until(call.promise)
      return { call, undo: () => finish(jobs) }
    },
  },
  'queue DEADLINE_EXCEEDED': {
    async play({ clock, occupy, halfOpen, victim }) {
      const jobs = await occupy()
      await halfOpen()
      const call = victim({ timeoutMs: 1_000 })
      await clock.until(call.promise)
      return { call, undo: () => finish(jobs) }
    },
  },
  'queue SHED': {
    async play({ clock, run, occupy, halfOpen, victim }) {
      const [first, second] = await occupy()
      await halfOpen()
      const third = createJob()
      run(third.fn, { priority: 'high' })
      const call = victim()
      await clock.advance(200)
      first?.finish()
      await clock.advance(200)
      second?.finish()
      await clock.advance(10)
      return { call, undo: () => third.finish() }
    },
  },
  'breaker CIRCUIT_OPEN': {
    halfOpen: 'always',
    async play({ clock, breaker, halfOpen, victim }) {
      await halfOpen()
      const answer = await breaker.allow()
      if (!answer.allowed) throw answer.error
      const call = victim()
      await clock.until(call.promise)
      return { call, undo: () => breaker.record('success', answer.permit) }
    },
  },
  'throttle THROTTLED': {
    options: THROTTLED,
    // It refuses with certainty while it refuses any share of the calls.
    random: 0,
    async play({ clock, run, halfOpen, victim }) {
      for (let i = 0; i < 3; i++) {
        run(() => Promise.reject(vendorError(429)))
        // Until the pause of the lane is over.
        await clock.advance(5_000)
      }
      await halfOpen()
      const call = victim()
      await clock.settle()
      // Until the rejections are out of the window.
      return { call, undo: () => clock.advance(61_000) }
    },
  },
  'vendor-limit VENDOR_LIMITED': {
    async play({ clock, limiter, used, halfOpen, victim }) {
      const permits = await limiter.takeUpTo(VENDOR_LIMIT - (await used()))
      await halfOpen()
      const call = victim()
      await clock.until(call.promise)
      return {
        call,
        undo: () => {
          for (const permit of permits) permit.refund()
        },
      }
    },
  },
  'vendor-limit STORE_UNAVAILABLE': {
    options: CLOSED_LIMITS,
    where: 'remote',
    refundLost: true,
    // With a half-open circuit the probe request would fail first.
    halfOpen: 'never',
    async play({ clock, connection, halfOpen, victim }) {
      await halfOpen()
      const call = victim()
      // The user limit is charged, the probe granted, and the permit request is in flight.
      await clock.until(stepped(connection, 'limits.take'))
      connection?.goDown()
      await clock.until(call.promise)
      return { call, undo: () => connection?.comeBack() }
    },
  },
  'pace QUEUE_FULL': {
    options: NO_QUEUE,
    async play({ clock, quick, halfOpen, victim }) {
      for (let i = 0; i < PACE; i++) await clock.until(quick().promise)
      await halfOpen()
      const call = victim()
      await clock.until(call.promise)
      return { call, undo: () => clock.advance(PACE_WINDOW_MS) }
    },
  },
  'concurrency QUEUE_FULL': {
    options: NO_QUEUE,
    async play({ clock, occupy, halfOpen, victim }) {
      const jobs = await occupy()
      await halfOpen()
      const call = victim()
      await clock.until(call.promise)
      return { call, undo: () => finish(jobs) }
    },
  },
  'timeout CALL_TIMEOUT': {
    ran: true,
    async play({ clock, halfOpen, victim }) {
      await halfOpen()
      const call = victim()
      await clock.until(call.promise)
      return { call, undo: () => {} }
    },
  },
  'timeout DEADLINE_EXCEEDED': {
    ran: true,
    async play({ clock, halfOpen, victim }) {
      await halfOpen()
      const call = victim({ timeoutMs: 1_000 })
      await clock.until(call.promise)
      return { call, undo: () => {} }
    },
  },
}

function finish(jobs: readonly ReturnType<typeof createJob>[]): void {
  for (const job of jobs) job.finish()
}

/** Resolves when a command of this kind has been sent. */
function stepped(connection: GuardPod['connection'], command: 'limits.take'): Promise<void> {
  return new Promise((resolve) => {
    const limits = connection?.limits
    if (limits === undefined) throw new Error(`no connection for ${command}`)
    const { take } = limits
    limits.take = (request) => {
      const reply = take(request)
      resolve()
      return reply
    }
  })
}

/** What each stage grants, and how to check that nothing is missing. */
const BOOKS: Partial<Record<Stage, (scene: Scene, refusal: Refusal) => Promise<void>>> = {
  async 'user-limit'({ clock, quick }, { ran, refundLost }) {
    const calls = []
    for (let i = 0; i <= USER_LIMIT; i++) {
      const call = quick({ user: 'victim' })
      await clock.until(call.promise)
      calls.push(fateOf(call))
    }
    const spent = ran || refundLost ? 1 : 0
    expect(calls.indexOf('USER_LIMITED')).toBe(USER_LIMIT - spent)
  },
  async queue({ clock, guard, run, occupy }, { options = OPTIONS }) {
    expect(guard.snapshot().queue.waiting).toBe(0)
    if (options.queue === undefined) return
    const jobs = await occupy()
    const calls = Array.from({ length: PLACES + 1 }, () => run(() => 'waited'))
    await clock.settle()
    expect(calls.map(fateOf)).toEqual(['pending', 'pending', 'pending', 'QUEUE_FULL'])
    finish(jobs)
    await clock.advance(50)
    expect(calls.map(fateOf)).toEqual(['resolved', 'resolved', 'resolved', 'QUEUE_FULL'])
  },
  async breaker({ clock, breaker, quick }) {
    await breaker.trip()
    await clock.advance(10_010)
    const probe = quick()
    await clock.until(probe.promise)
    expect(fateOf(probe)).toBe('resolved')
    await clock.advance(1_500)
    expect(breaker.state()).toBe('closed')
  },
  async 'vendor-limit'({ clock, guard, used }) {
    await clock.advance(1_500)
    expect(await used()).toBe(guard.snapshot().attempts)
  },
  async pace({ clock, guard, quick }) {
    const before = guard.snapshot().attempts
    const refilled = Math.floor((clock.now() * PACE) / PACE_WINDOW_MS)
    const abort = new AbortController()
    const startsOne = async () => {
      const call = quick({ signal: abort.signal })
      await clock.advance(10)
      return call.state === 'resolved'
    }
    let started = 0
    while (started <= PACE && (await startsOne())) started++
    expect(started).toBe(Math.min(PACE, PACE - before + refilled))
    abort.abort()
  },
  async concurrency({ clock, guard, run }) {
    expect(guard.snapshot().active).toBe(0)
    const jobs = Array.from({ length: SLOTS }, createJob)
    for (const { fn } of jobs) run(fn)
    await clock.advance(10)
    expect(jobs.map(({ running }) => running)).toEqual([1, 1])
    finish(jobs)
    await clock.settle()
    expect(guard.snapshot().active).toBe(0)
  },
}

async function playOut(name: string, state: 'closed' | 'half-open') {
  const refusal = REFUSALS[name] as Refusal
  shedding = false
  const { options = OPTIONS, where = 'memory', random } = refusal
  const draws = random === undefined ? {} : { random: () => random }
  const pod = createGuardPod(options, { where, ...draws })
  const { clock, run, breaker, guard } = pod
  const job = createJob()
  const scene: Scene = {
    ...pod,
    async halfOpen() {
      if (state === 'closed') return
      await breaker.trip()
      await clock.advance(10_010)
      expect(guard.snapshot().breakers.map((each) => each.state)).toEqual(['half-open'])
    },
    async occupy() {
      const jobs = Array.from({ length: SLOTS }, createJob)
      for (const { fn } of jobs) run(fn)
      await clock.advance(10)
      expect(guard.snapshot().active).toBe(SLOTS)
      return jobs
    },
    victim: (options) => run(job.fn, { user: 'victim', ...options }),
  }
  // The pod knows the breaker's state before the test begins.
  await clock.until(pod.quick().promise)
  const { call, undo } = await refusal.play(scene)
  return { scene, refusal, call, undo, job }
}

/** Removes the obstacle and closes the circuit. */
async function clearUp({ clock, breaker }: Scene, undo: () => unknown): Promise<void> {
  await undo()
  await clock.advance(1_500)
  // A leaked probe would be renewed for a minute.
  expect(breaker.snapshot().probes).toBe(0)
  await breaker.reset()
  await clock.advance(10)
}

describe.each(ORDER.flatMap(({ stage, codes }) => codes.map((code) => ({ stage, code }))))(
  'call refused by $stage with $code',
  ({ stage, code }) => {
    const name = `${stage} ${code}`
    const { halfOpen } = REFUSALS[name] ?? {}
    const states = (['closed', 'half-open'] as const).filter(
      (state) => halfOpen === undefined || (halfOpen === 'always') === (state === 'half-open'),
    )
    describe.each(states)('circuit %s', (state) => {
      it('the refusal has the right stage, code and scope, and finite numbers', async () => {
        const { call, job, refusal } = await playOut(name, state)
        expect(call.error).toBeInstanceOf(SpillwayError)
        const row = ORDER.find((each) => each.stage === stage)
        expect(call.error).toMatchObject({ stage, code, scope: row?.scope })
        const { message, details } = call.error as SpillwayError
        expect(message).toMatch(/^openai: \S.{15,}$/)
        expect(details.name).toBe('openai')
        // A silent store gives no numbers.
        const numbers = Object.values(details).filter((detail) => typeof detail === 'number')
        if (code !== 'STORE_UNAVAILABLE') expect(numbers).not.toEqual([])
        expect(numbers.every(Number.isFinite)).toBe(true)
        expect(job.started).toBe(refusal.ran ? 1 : 0)
      })

      it.each(Object.keys(BOOKS) as Stage[])('refusal takes nothing from %s', async (taker) => {
        const { scene, refusal, undo } = await playOut(name, state)
        await clearUp(scene, undo)
        await BOOKS[taker]?.(scene, refusal)
        expect(scene.connection?.counts.errors ?? 0).toBe(0)
      })
    })
  },
)

describe('table of stages', () => {
  it('every refusal in the stage table has a test case, and no case is without a refusal', () => {
    const all = ORDER.flatMap(({ stage, codes }) => codes.map((code) => `${stage} ${code}`))
    expect(Object.keys(REFUSALS).sort()).toEqual(all.sort())
  })

  it('every stage that grants something has a check, in table order', () => {
    const stages = ORDER.map(({ stage }) => stage)
    expect(Object.keys(BOOKS)).toEqual(stages.filter((stage) => stage in BOOKS))
  })
})
