/**
 * How a guard with a remote store reports outcomes: piggybacked on permit requests while there are
 * any, alone when there are none, and each outcome exactly once.
 */
import { describe, expect, it, onTestFinished } from 'vitest'
import { onEvent } from '../src/core/events.js'
import { createRandom } from '../src/core/random.js'
import type { GuardOptions } from '../src/guard/options.js'
import type { BreakerReport } from '../src/store/port.js'
import { countFates, createGuardPod, createJob, fateOf, vendorError } from './guard-pod.js'
import { usualOrLong } from './long-run.js'

const OPTIONS: GuardOptions = {
  queue: { size: 100, timeoutMs: '10s' },
  breaker: { failureRate: 0.9, windowMs: '5m' },
  limits: [{ limit: 100_000, windowMs: '5m' }],
}
/** With this many calls the breaker no longer needs each success at once. */
const ENOUGH = 150

interface Sent {
  kind: 'along' | 'alone'
  atMs: number
  report: BreakerReport
}

/** A pod that has made some calls, and everything it reports from now on. */
async function setup(options: GuardOptions = OPTIONS, { lanes = ['default'], seed = 1 } = {}) {
  const pod = createGuardPod(options, { where: 'remote', seed })
  const { clock, store, breaker, quick } = pod
  for (const lane of lanes) for (let call = 0; call < ENOUGH; call++) quick({ lane })
  await clock.advance(500)
  const sent: Sent[] = []
  const trips = { take: 0, sync: 0 }
  const { take } = store.limits
  store.limits.take = (request) => {
    trips.take++
    const { report } = request
    if (report !== undefined) sent.push({ kind: 'along', atMs: clock.now(), report })
    return take(request)
  }
  const { report: sendReport, sync } = store.breakers
  store.breakers.report = (report) => {
    sent.push({ kind: 'alone', atMs: clock.now(), report })
    return sendReport(report)
  }
  store.breakers.sync = (requests) => {
    trips.sync++
    return sync(requests)
  }
  /** The breaker's counts, as seen by another pod. */
  const counted = async (lane = 'default') => {
    // Reading creates no lane; an outcome that does not count does.
    breaker.record('ignored', { lane })
    await clock.advance(1_500)
    return breaker.snapshot({ lane })
  }
  /** Makes sequential calls for `ms`; each takes as long as two round trips. */
  const callFor = async (ms: number, lane?: string) => {
    const untilMs = clock.now() + ms
    let calls = 0
    while (clock.now() < untilMs) {
      const call = quick(lane === undefined ? {} : { lane })
      await clock.until(call.promise)
      expect(fateOf(call)).toBe('resolved')
      calls++
    }
    return calls
  }
  return { ...pod, connection: pod.connection!, sent, trips, counted, callFor }
}

const kinds = (sent: readonly Sent[]) => [...new Set(sent.map(({ kind }) => kind))]

describe('success reports of a busy guard', () => {
  it('all successes of a busy guard are piggybacked and no sync is needed', async () => {
    const { sent, trips, callFor, counted } = await setup()
    const calls = await callFor(3_000)
    expect(trips.take).toBe(calls)
    expect(kinds(sent)).toEqual(['along'])
    expect(trips.sync).toBe(0)
    expect(await counted()).toMatchObject({ calls: ENOUGH + calls, failures: 0 })
  })

  it('successes are batched: few round trips carry reports, and none waits longer than 100 ms', async () => {
    const { sent, trips, callFor } = await setup()
    await callFor(3_000)
    expect(trips.take).toBeGreaterThan(1_000)
    expect(sent.length).toBeLessThanOrEqual(60)
    // Reports at most 100 ms apart cover the three seconds.
    expect(sent.length).toBeGreaterThanOrEqual(29)
    for (const [index, { atMs }] of sent.entries()) {
      if (index > 0) expect(atMs - sent[index - 1]!.atMs).toBeLessThanOrEqual(100)
    }
  })

  it('successes of each lane are piggybacked on permit requests of that lane', async () => {
    const lanes = ['a', 'b', 'c']
    const { clock, sent, counted, quick } = await setup(OPTIONS, { lanes })
    for (let call = 0; call < 1_500; call++) {
      quick({ lane: lanes[call % 3]! })
      await clock.advance(1)
    }
    await clock.advance(200)
    for (const lane of lanes) {
      expect(sent.some(({ kind, report }) => kind === 'along' && report.lane === lane)).toBe(true)
      expect(await counted(lane)).toMatchObject({ calls: ENOUGH + 500 })
    }
  })

  it("with per: 'vendor' successes are piggybacked on permit requests of all lanes", async () => {
    const vendor: GuardOptions = { ...OPTIONS, breaker: { ...OPTIONS.breaker, per: 'vendor' } }
    const { sent, callFor, counted } = await setup(vendor, { lanes: ['a', 'b'] })
    let calls = 2 * ENOUGH
    for (let turn = 0; turn < 20; turn++) calls += await callFor(60, turn % 2 === 0 ? 'a' : 'b')
    expect(kinds(sent)).toEqual(['along'])
    expect(new Set(sent.map(({ report }) => report.lane))).toEqual(new Set(['']))
    expect(await counted('a')).toMatchObject({ calls })
  })

  it('piggybacked successes count for the reporting pod in a quorum', async () => {
    const quorum: GuardOptions = { ...OPTIONS, breaker: { ...OPTIONS.breaker, quorum: 2 } }
    const { sent, callFor, counted } = await setup(quorum)
    const calls = await callFor(1_000)
    expect(kinds(sent)).toEqual(['along'])
    expect(await counted()).toMatchObject({ calls: ENOUGH + calls })
  })
})

describe('outcomes that are reported alone', () => {
  it('without permit requests a success is reported alone after 100 ms', async () => {
    const { clock, sent, run, counted } = await setup()
    const job = createJob()
    run(job.fn)
    await clock.advance(10)
    const endedMs = clock.now()
    job.finish()
    await clock.advance(99)
    expect(sent).toEqual([])
    await clock.advance(10)
    expect(sent).toMatchObject([{ kind: 'alone', report: { outcomes: [[0, 1]] } }])
    expect(sent[0]!.atMs - endedMs).toBeLessThanOrEqual(101)
    expect(await counted()).toMatchObject({ calls: ENOUGH + 1 })
  })

  it('a failure is reported at once, in order and with the successes before it', async () => {
    const { clock, sent, run, quick } = await setup()
    for (let call = 0; call < 5; call++) quick()
    await clock.advance(10)
    expect(sent).toEqual([])
    const failed = run(() => Promise.reject(vendorError(500)))
    await clock.until(failed.promise)
    expect(sent).toMatchObject([
      {
        kind: 'alone',
        report: {
          outcomes: [
            [0, 5],
            [1, 1],
          ],
        },
      },
    ])
    expect(sent[0]!.atMs).toBe(clock.now())
  })

  it('successes are reported at once while the breaker has counted few calls', async () => {
    const { clock, store, quick } = createGuardPod(OPTIONS, { where: 'remote' })
    const { take } = store.limits
    let along = 0
    store.limits.take = (request) => {
      if (request.report !== undefined) along++
      return take(request)
    }
    for (let call = 0; call < 90; call++) {
      quick()
      await clock.advance(60)
    }
    expect(along).toBe(0)
  })
})

describe('lost replies of piggybacked reports', () => {
  /** Applies the fault to the next round trip with outcomes only. */
  const during = async (fault: 'loseReplies' | 'loseRequests') => {
    const all = await setup()
    const { clock, connection, sent, callFor, quick, trips } = all
    const before = await callFor(200)
    await clock.advance(70)
    sent.length = 0
    quick()
    await clock.advance(3)
    // The success waits for half of its time and is then piggybacked.
    await clock.advance(60)
    connection[fault](1)
    const takesBefore = trips.take
    const late = quick()
    await clock.advance(1)
    expect(sent).toMatchObject([{ kind: 'along' }])
    // Before the store is judged unreachable.
    await clock.advance(30)
    connection[fault](0)
    await clock.until(late.promise)
    return { ...all, calls: ENOUGH + before + 2, late, takes: trips.take - takesBefore }
  }

  it('a lost piggybacked report is sent again alone under the same number', async () => {
    for (const fault of ['loseReplies', 'loseRequests'] as const) {
      const { sent, late, calls, counted, used, takes } = await during(fault)
      expect(fateOf(late)).toBe('resolved')
      expect(await counted()).toMatchObject({ calls })
      const [along, alone] = sent
      expect([along!.kind, alone!.kind]).toEqual(['along', 'alone'])
      expect(alone!.report).toEqual(along!.report)
      // The call requested a permit once more; the first one counts as spent.
      expect(takes).toBe(2)
      expect(await used()).toBe(calls + (fault === 'loseReplies' ? 1 : 0))
    }
  })

  const SEEDS = usualOrLong(8, 15)
  it('no outcome is lost or counted twice while the store counts as reachable', async () => {
    let repeatedReports = 0
    let outages = 0
    let withOutages = 0
    onTestFinished(onEvent(({ type }) => type === 'store.degraded' && outages++))
    for (let seed = 1; seed <= SEEDS; seed++) {
      const lanes = ['a', 'b']
      const { clock, connection, sent, run, counted, guard } = await setup(OPTIONS, { lanes, seed })
      const random = createRandom(seed)
      outages = 0
      const reported = new Map(lanes.map((lane) => [lane, { calls: ENOUGH, failures: 0 }]))
      const calls: ReturnType<typeof run>[] = []
      for (let step = 0; step < 600; step++) {
        const lane = lanes[Math.floor(random() * 2)]!
        const fails = random() < 0.05
        if (step % 40 === 0) {
          connection.loseReplies(random() < 0.5 ? 0.06 : 0)
          connection.loseRequests(random() < 0.5 ? 0.06 : 0)
        }
        calls.push(
          run(
            () => {
              const ends = reported.get(lane)!
              ends.calls++
              if (!fails) return 'fine'
              ends.failures++
              throw vendorError(500)
            },
            { lane },
          ),
        )
        await clock.advance(random() * 10)
      }
      connection.comeBack()
      connection.loseReplies(0)
      connection.loseRequests(0)
      await clock.advance(15_000)
      expect(countFates(calls).pending).toBeUndefined()
      for (const lane of lanes) {
        const { calls: known, failures } = await counted(lane)
        const ends = reported.get(lane)!
        expect(known, `${seed}`).toBeLessThanOrEqual(ends.calls)
        // Outcomes during an outage stay with the pod.
        if (outages === 0) expect({ calls: known, failures }, `${seed}`).toEqual(ends)
        else withOutages++
      }
      // No round trip repeats a report of an earlier one.
      const carried = sent.flatMap(({ kind, report }) => (kind === 'along' ? report.sequence : []))
      expect(new Set(carried).size).toBe(carried.length)
      for (const { kind, report } of sent) {
        if (kind === 'alone' && carried.includes(report.sequence)) repeatedReports++
      }
      await clock.until(guard.close())
    }
    // The seeds have to contain reports sent again, and must not all end in outages.
    expect(repeatedReports).toBeGreaterThan((SEEDS * 2) / 3)
    expect(withOutages).toBeLessThan((SEEDS * 4) / 3)
  })
})

describe('breaker state in a permit reply', () => {
  it('an open breaker in the reply stops calls with granted permits when the push was lost', async () => {
    const { clock, connection, breaker, sent, quick, run, callFor, used } = await setup()
    await callFor(200)
    await clock.advance(200)
    connection.losePushes(1)
    quick()
    await clock.advance(60)
    await breaker.trip()
    const usedBefore = await used()
    let called = false
    const refused = run(() => {
      called = true
    })
    sent.length = 0
    await clock.until(refused.promise)
    expect(sent).toMatchObject([{ kind: 'along' }])
    expect(fateOf(refused)).toBe('CIRCUIT_OPEN')
    expect(called).toBe(false)
    await clock.advance(10)
    expect(await used()).toBe(usedBefore)
  })
})

describe('breaker sync', () => {
  it('an idle guard syncs its breaker every second until three seconds after the last call', async () => {
    const { clock, trips } = await setup()
    await clock.advance(10_000)
    expect(trips.sync).toBe(4)
  })

  it('guard syncs every second while the breaker is open, despite push messages', async () => {
    const { clock, trips, breaker, connection } = await setup()
    await breaker.trip()
    await clock.advance(1_000)
    trips.sync = 0
    const pushed = connection.counts.pushed
    for (let step = 0; step < 50; step++) {
      await breaker.isolate('1m', { holder: `${step}` })
      await clock.advance(100)
    }
    expect(connection.counts.pushed - pushed).toBe(50)
    expect(trips.sync).toBe(5)
  })

  it('guard syncs at once after a gap in the push messages', async () => {
    const { clock, trips, connection, callFor } = await setup()
    await callFor(200)
    connection.goDown()
    connection.comeBack()
    // The time it takes to subscribe again.
    await clock.advance(5)
    expect(trips.sync).toBe(1)
  })

  it('guard learns of a transition within 1.5 s although the push message was lost', async () => {
    for (let phase = 0; phase < 1_000; phase += usualOrLong(200, 50)) {
      const { clock, connection, breaker, guard, callFor } = await setup()
      await callFor(1_000 + phase)
      connection.losePushes(1)
      await breaker.trip()
      const trippedMs = clock.now()
      while (guard.breaker!.state() !== 'open') await clock.advance(5)
      expect(clock.now() - trippedMs).toBeLessThanOrEqual(1_510)
      await clock.until(guard.close())
    }
  })
})
