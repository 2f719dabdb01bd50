/** What a guarded function gets from its attempt, and how the attempt is judged. */
import { describe, expect, it } from 'vitest'
import { currentDeadline, Deadline, runWithDeadline } from '../src/core/time/deadline.js'
import { sleep } from '../src/core/time/sleep.js'
import type { GuardTimings } from '../src/guard/pipeline/counters.js'
import { createSpillway } from '../src/guard/spillway.js'
import { customStage } from '../src/guard/stages/custom.js'
import type { CallContext, GuardOptions } from '../src/index.js'
import { createVirtualClock } from '../src/testing/virtual-clock.js'
import { createGuardPod } from './guard-pod.js'

const setup = (options: GuardOptions) => createGuardPod(options, { where: 'memory' })

describe('context of an attempt', () => {
  it('context names guard, lane and attempt, and settles costs without limits', async () => {
    const { clock, guard, run } = setup({ retry: { attempts: 2, budget: 1, baseMs: 1 } })
    const seen: Pick<CallContext, 'guard' | 'lane' | 'attempt' | 'hedge'>[] = []
    const call = run(
      ({ guard, lane, attempt, hedge, settle }) => {
        seen.push({ guard, lane, attempt, hedge })
        settle({ tokens: 5 })
        if (attempt === 1) throw Object.assign(new Error('down'), { status: 503 })
        return 'fine'
      },
      { lane: 'a' },
    )
    await clock.advance(1_000)
    const each = { guard: guard.name, lane: 'a', hedge: false }
    expect(seen).toEqual([
      { ...each, attempt: 1 },
      { ...each, attempt: 2 },
    ])
    expect(call.value).toBe('fine')
  })

  it('progress ends the wait for the first byte', async () => {
    const { clock, run } = setup({ timeout: { firstByteMs: 100 } })
    const work = (reports: boolean) => async (context: CallContext) => {
      await sleep(clock, 50)
      if (reports) context.progress()
      await sleep(clock, 200)
      return 'fine'
    }
    const [reported, silent] = [run(work(true)), run(work(false))]
    await clock.advance(1_000)
    expect(reported.value).toBe('fine')
    expect(silent.error).toMatchObject({ code: 'CALL_TIMEOUT' })
  })

  it.each([{}, { retry: { attempts: 2 } }])(
    'the deadline of a call is that of the calls which its function makes, with the options %j',
    async (options: GuardOptions) => {
      const { clock, run } = setup(options)
      await clock.advance(1_000)
      const left: (number | undefined)[] = []
      const fn = ({ deadline }: CallContext) => {
        left.push(deadline?.remainingMs(), currentDeadline()?.remainingMs())
      }
      await run(fn, { timeoutMs: 500 }).promise
      await runWithDeadline(new Deadline(1_300, clock), () => run(fn).promise)
      await runWithDeadline(new Deadline(1_300, clock), () => run(fn, { timeoutMs: 500 }).promise)
      await run(fn).promise
      expect(left).toEqual([500, 500, 300, 300, 300, 300, undefined, undefined])
    },
  )
})

describe('attempts and work around them', () => {
  it('a custom stage learns that an attempt belongs to a job, and of which tenant', async () => {
    const clock = createVirtualClock()
    const spillway = createSpillway({ clock })
    const seen: [kind: string, tenant: string | undefined][] = []
    const stage = customStage({
      name: 'seen',
      after: 'breaker',
      acquire({ kind, tenant }) {
        seen.push([kind, tenant])
      },
    })
    const guard = spillway.guard('vendor', { stages: [stage] })
    const queue = spillway.jobQueue<number, number>('batch', { guard: 'vendor' })
    await guard.run(() => 1)
    queue.work(async ({ data }) => data)
    await clock.until(queue.addMany([{ data: 1, tenant: 'acme' }]))
    await clock.advance(1_000)
    expect(seen).toEqual([
      ['call', undefined],
      ['job', 'acme'],
    ])
    await clock.until(spillway.close({ graceMs: 0 }))
  })

  it('stages release an attempt in the reverse order in which they acquired it', async () => {
    const order: string[] = []
    const stage = (name: string, after: string) =>
      customStage({
        name,
        after,
        acquire() {
          order.push(`acquire ${name}`)
          return name
        },
        release: () => order.push(`release ${name}`),
      })
    const { run } = setup({ stages: [stage('one', 'breaker'), stage('two', 'one')] })
    await run(() => order.push('run')).promise
    expect(order).toEqual(['acquire one', 'acquire two', 'run', 'release two', 'release one'])
  })

  it('a call with a timeout is not retried after a guard within it has given up', async () => {
    const clock = createVirtualClock()
    const spillway = createSpillway({ clock })
    const retry = { attempts: 2, budget: 1, baseMs: 1 }
    const [outer, inner] = [spillway.guard('outer', { retry }), spillway.guard('inner', { retry })]
    let attempts = 0
    const fail = async () => {
      attempts++
      throw Object.assign(new Error('down'), { status: 503 })
    }
    const call = outer.run(() => inner.run(fail), { timeoutMs: 60_000 })
    await clock.until(call.catch(() => {}))
    expect(attempts).toBe(2)
    await clock.until(spillway.close())
  })

  it('a pod that closes waits for every running call', async () => {
    const { clock, spillway, run } = setup({})
    run(() => sleep(clock, 100))
    run(() => sleep(clock, 500))
    let closed = false
    const closing = spillway.close({ graceMs: 10_000 }).then(() => {
      closed = true
    })
    await clock.advance(499)
    expect(closed).toBe(false)
    await clock.until(closing)
    expect(clock.now()).toBeLessThan(1_000)
  })

  it('work that a guard within the call has left behind keeps the slot of the call', async () => {
    const clock = createVirtualClock()
    const spillway = createSpillway({ clock })
    const outer = spillway.guard('outer', { concurrency: { limit: 1 } })
    const inner = spillway.guard('inner', { timeout: { callMs: 100 } })
    const call = outer.run(() => inner.run(() => sleep(clock, 500))).catch(({ code }) => code)
    expect(await clock.until(call)).toBe('CALL_TIMEOUT')
    expect(outer.snapshot().active).toBe(1)
    await clock.advance(400)
    expect(outer.snapshot().active).toBe(0)
    await clock.until(spillway.close())
  })
})

describe('judgement of an attempt', () => {
  it('classify judges every value, objects or not', async () => {
    const { guard, run } = setup({
      classify: (end) => ('value' in end && end.value === 'bad' ? 'failure' : undefined),
    })
    for (const value of ['bad', 'good', { bad: true }, null, undefined]) {
      await run(() => value).promise
    }
    expect(guard.snapshot().outcomes).toMatchObject({ success: 4, failure: 1 })
  })

  it('an attempt is slow after slowMs, at any time of the clock', async () => {
    const { clock, guard, run } = setup({ breaker: { slowMs: 100, slowRate: 1 } })
    await clock.advance(5_000)
    run(() => 'primitive')
    run(() => sleep(clock, 99).then(() => ({ object: true })))
    run(() => sleep(clock, 100).then(() => 'slow'))
    await clock.advance(1_000)
    expect(guard.snapshot().outcomes).toMatchObject({ success: 2, slow: 1 })
  })

  it('durations of attempts are those of their functions', async () => {
    const { clock, guard, run } = setup({})
    const timings = (guard as unknown as { timings(): GuardTimings }).timings()
    await clock.advance(5_000)
    run(() => sleep(clock, 40))
    await clock.advance(1_000)
    expect(timings.attempts[0]?.durations.sum).toBeCloseTo(0.04)
    expect(timings.queueWait.sum).toBe(0)
  })

  it('work that a timed-out call leaves behind keeps its slot', async () => {
    const { clock, guard, run } = setup({
      concurrency: { limit: 1 },
      timeout: { callMs: 100 },
    })
    const call = run(() => sleep(clock, 500))
    await clock.advance(100)
    expect(call.error).toMatchObject({ code: 'CALL_TIMEOUT' })
    expect(guard.snapshot().active).toBe(1)
    await clock.advance(400)
    expect(guard.snapshot().active).toBe(0)
  })

  it('a response of guard.fetch keeps its slot until its body was read', async () => {
    const { guard } = setup({
      concurrency: { limit: 1 },
      fetch: { fetch: async () => new Response('body') },
    })
    const response = await guard.fetch('http://localhost/')
    expect(guard.snapshot().active).toBe(1)
    expect(await response.text()).toBe('body')
    expect(guard.snapshot().active).toBe(0)
  })
})
