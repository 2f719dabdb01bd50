/** When the breaker opens, and that it opens on all pods. */
import { describe, expect } from 'vitest'
import { it } from '../concurrent-tests.js'
import type { Fleet } from '../limit-claims/fleet.js'
import {
  counted,
  createDownstream,
  LONG_MS,
  MARGIN_MS,
  report,
  SHORT_MS,
  untilKnown,
  untilState,
} from './fleet.js'

type Run = [outcome: 'success' | 'failure' | 'slow', times: number]

export function claimTripping(fleet: Fleet): void {
  describe('consecutive failures', () => {
    it('consecutive failures open the breaker on all pods, whichever pod saw them', async () => {
      const pod = createDownstream(fleet, { consecutiveFailures: 50, openMs: LONG_MS })
      const [a, b] = [pod(), pod()]
      await untilKnown(fleet, [a, b])
      await report(fleet, a, 'failure', 49)
      expect(a.state()).toBe('closed')
      await report(fleet, a, 'failure')
      expect(a.state()).toBe('open')
      await untilState(fleet, [b], 'open')
      const answer = await b.allow()
      expect(answer).toMatchObject({ allowed: false, error: { code: 'CIRCUIT_OPEN' } })
    })

    it('ten simultaneous failures of ten pods count as exactly ten', async () => {
      const pod = createDownstream(fleet, { consecutiveFailures: 11, openMs: LONG_MS })
      const pods = Array.from({ length: 10 }, () => pod())
      await Promise.all(pods.map((each) => report(fleet, each, 'failure')))
      expect(await counted(fleet, pod)).toMatchObject({
        state: 'closed',
        calls: 10,
        failures: 10,
        consecutiveFailures: 10,
      })
      await report(fleet, pod(), 'failure')
      expect(await counted(fleet, pod)).toMatchObject({ state: 'open' })
    })

    it('a success on any pod resets the consecutive failures', async () => {
      const pod = createDownstream(fleet, { consecutiveFailures: 10, openMs: LONG_MS })
      const [a, b] = [pod(), pod()]
      await report(fleet, a, 'failure', 9)
      await report(fleet, b, 'success')
      await report(fleet, a, 'failure', 9)
      expect(await counted(fleet, pod)).toMatchObject({
        state: 'closed',
        calls: 19,
        failures: 18,
        consecutiveFailures: 9,
      })
      await report(fleet, b, 'failure')
      expect(b.state()).toBe('open')
    })

    it('a long silence resets the consecutive failures', async () => {
      const pod = createDownstream(fleet, { consecutiveFailures: 10, windowMs: 300 })
      const a = pod()
      await report(fleet, a, 'failure', 9)
      await fleet.sleep(300 + MARGIN_MS)
      await report(fleet, a, 'failure')
      expect(await counted(fleet, pod)).toMatchObject({ state: 'closed', consecutiveFailures: 1 })
      await report(fleet, a, 'failure', 9)
      expect(a.state()).toBe('open')
    })
  })

  describe('failure rate', () => {
    it('failure rate opens the breaker once minimumCalls are in the window', async () => {
      const pod = createDownstream(fleet, { failureRate: 0.5, minimumCalls: 10 })
      const [a, b] = [pod(), pod()]
      await report(fleet, a, 'failure', 5)
      await report(fleet, b, 'success', 4)
      expect(await counted(fleet, pod)).toMatchObject({ state: 'closed', calls: 9, failures: 5 })
      await report(fleet, b, 'success')
      expect(b.state()).toBe('open')
      await untilState(fleet, [a], 'open')
    })

    it('breaker stays closed below the failure rate', async () => {
      const pod = createDownstream(fleet, { failureRate: 0.5, minimumCalls: 10 })
      const a = pod()
      await report(fleet, a, 'success', 50)
      await report(fleet, a, 'failure', 49)
      expect(a.state()).toBe('closed')
      await report(fleet, a, 'failure')
      expect(a.state()).toBe('open')
    })

    it('failure rate covers only the calls of the window', async () => {
      // Long enough for the reports of a busy machine.
      const windowMs = 4_000
      const pod = createDownstream(fleet, { failureRate: 0.5, minimumCalls: 5, windowMs })
      const a = pod()
      await report(fleet, a, 'failure', 4)
      // One of the ten slices is kept in full.
      await fleet.sleep(1.1 * windowMs + MARGIN_MS)
      expect(await counted(fleet, pod)).toMatchObject({ calls: 0, failures: 0 })
      await report(fleet, a, 'failure', 4)
      expect(a.state()).toBe('closed')
      await report(fleet, a, 'failure')
      expect(a.state()).toBe('open')
    })

    it('with windowCalls the failure rate covers the last calls', async () => {
      const pod = createDownstream(fleet, { failureRate: 0.5, windowCalls: 10 })
      const [a, b] = [pod(), pod()]
      await report(fleet, a, 'success', 100)
      await report(fleet, b, 'failure', 4)
      expect(await counted(fleet, pod)).toMatchObject({ state: 'closed', calls: 10, failures: 4 })
      await report(fleet, b, 'failure')
      expect(b.state()).toBe('open')
    })

    it('throttled and ignored calls do not count towards the failure rate', async () => {
      const pod = createDownstream(fleet, { failureRate: 0.5, minimumCalls: 4 })
      const a = pod()
      await report(fleet, a, 'throttled', 50)
      await report(fleet, a, 'ignored', 50)
      await report(fleet, a, 'failure', 3)
      expect(await counted(fleet, pod)).toMatchObject({ state: 'closed', calls: 3, failures: 3 })
      await report(fleet, a, 'failure')
      expect(a.state()).toBe('open')
    })
  })

  describe('slow rate', () => {
    it('slow rate opens the breaker although no call has failed', async () => {
      const pod = createDownstream(fleet, { slowRate: 0.3, slowMs: 100, minimumCalls: 10 })
      const [a, b] = [pod(), pod()]
      await report(fleet, a, 'success', 7)
      await report(fleet, b, 'slow', 2)
      expect(await counted(fleet, pod)).toMatchObject({ state: 'closed', calls: 9, slow: 2 })
      await report(fleet, b, 'slow')
      expect(b.state()).toBe('open')
    })

    it('run() measures which calls are slow', async () => {
      const pod = createDownstream(fleet, { slowRate: 1, slowMs: 40, minimumCalls: 2 })
      const a = pod()
      await a.run(() => 'fast')
      for (let call = 0; call < 2; call++) await fleet.until(a.run(() => fleet.sleep(60)))
      await fleet.until(a.flush())
      expect(await counted(fleet, pod)).toMatchObject({ calls: 3, slow: 2, failures: 0 })
    })
  })

  describe('several trip conditions', () => {
    const options = { consecutiveFailures: 5, failureRate: 0.5, slowRate: 0.5, slowMs: 100 }

    const inARow: Run[] = [['failure', 5]]
    const manyFailures: Run[] = [
      ['success', 6],
      ['failure', 4],
      ['success', 1],
      ['failure', 3],
    ]
    const manySlow: Run[] = [
      ['success', 6],
      ['slow', 6],
    ]

    it.each([
      { what: 'consecutive failures', runs: inARow },
      { what: 'failures', runs: manyFailures },
      { what: 'slow calls', runs: manySlow },
    ])('each trip condition opens the breaker by itself: $what', async ({ runs }) => {
      const pod = createDownstream(fleet, options)
      const a = pod()
      for (const [outcome, times] of runs) {
        expect(a.state()).toBe('closed')
        await report(fleet, a, outcome, times)
      }
      expect(a.state()).toBe('open')
    })

    it('breaker stays closed while no trip condition holds', async () => {
      const pod = createDownstream(fleet, options)
      const a = pod()
      await report(fleet, a, 'success', 8)
      await report(fleet, a, 'failure', 4)
      await report(fleet, a, 'slow', 4)
      await report(fleet, a, 'failure', 2)
      expect(a.state()).toBe('closed')
      expect(await counted(fleet, pod)).toMatchObject({ calls: 18, failures: 6, slow: 4 })
    })
  })

  describe('open breaker', () => {
    it('open time ends by itself without a call', async () => {
      const pod = createDownstream(fleet, { consecutiveFailures: 1, openMs: SHORT_MS })
      const [a, b] = [pod(), pod()]
      await untilKnown(fleet, [a, b])
      await report(fleet, a, 'failure')
      await untilState(fleet, [a, b], 'open')
      expect(a.snapshot().untilMs).toBeGreaterThan(0)
      expect(a.snapshot().untilMs).toBeLessThanOrEqual(SHORT_MS)
      await untilState(fleet, [a, b], 'half-open')
    })

    it('refusal of an open breaker states when to retry', async () => {
      const pod = createDownstream(fleet, { consecutiveFailures: 1, openMs: LONG_MS })
      const a = pod()
      await report(fleet, a, 'failure')
      const refused = await a.run(() => 'called').catch((error: unknown) => error)
      expect(refused).toMatchObject({
        code: 'CIRCUIT_OPEN',
        stage: 'breaker',
        scope: 'shared',
        status: 503,
        details: { lane: 'default', state: 'open', failures: 1 },
      })
      const { retryAfterMs } = refused as { retryAfterMs: number }
      expect(retryAfterMs).toBeLessThanOrEqual(LONG_MS)
      expect(retryAfterMs).toBeGreaterThan(LONG_MS - 10_000)
    })

    it('a new pod finds the breaker open and changes nothing', async () => {
      const pod = createDownstream(fleet, { consecutiveFailures: 5, openMs: LONG_MS })
      const a = pod()
      await report(fleet, a, 'failure', 4)
      expect((await pod().allow()).allowed).toBe(true)
      await report(fleet, a, 'failure')
      const newcomer = pod()
      expect((await newcomer.allow()).allowed).toBe(false)
      expect(newcomer.state()).toBe('open')
      expect(a.state()).toBe('open')
    })
  })
}
