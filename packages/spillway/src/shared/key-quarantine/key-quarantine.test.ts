import { describe, expect, it, onTestFinished } from 'vitest'
import { distantBreakers } from '../../../test/distant-breakers.js'
import { SpillwayError } from '../../core/errors.js'
import { onEvent, type SpillwayEvent } from '../../core/events.js'
import { LONGEST_RESET_MS } from '../../core/failures/error-kind.js'
import { createOperator } from '../../operate/operator.js'
import { createVirtualClock } from '../../testing/virtual-clock.js'
import { keyIdOf } from './key-id.js'
import { type KeyAnswer, type KeyPermit, KeyQuarantine } from './key-quarantine.js'
import { UNKNOWN_RESET_MS } from './policy.js'

const SECOND_MS = 1_000
const MINUTE_MS = 60_000
const HOUR_MS = 60 * MINUTE_MS

const MAIN = keyIdOf('openai', 'main', 'sk-first')
const ROTATED = keyIdOf('openai', 'main', 'sk-second')
const SPARE = keyIdOf('openai', 'spare', 'sk-third')

const ACCEPTED: KeyAnswer = { kind: 'accepted' }
const INVALID: KeyAnswer = { kind: 'invalid-key' }
const UNKNOWN: KeyAnswer = { kind: 'unknown' }
const exhausted = (resetMs?: number): KeyAnswer => ({ kind: 'quota-exhausted', resetMs })

/** A fleet of pods in virtual time, and how often the vendor got a request with each key. */
function setup(pods = 3) {
  const clock = createVirtualClock()
  const distant = distantBreakers(clock)
  const { store } = distant
  const fleet = Array.from({ length: pods }, (_, index) => {
    const quarantine = new KeyQuarantine({
      ...{ vendor: 'openai', store, pod: `pod-${index}`, clock, watch: undefined },
    })
    quarantine.use([MAIN, SPARE])
    onTestFinished(() => void quarantine.close())
    return quarantine
  })
  const enter = (pod: KeyQuarantine, key = MAIN) => clock.until(Promise.resolve(pod.enter(key)))
  /** One request: whether it was sent. */
  const request = async (pod: KeyQuarantine, answer: KeyAnswer, key = MAIN) => {
    const permit = await enter(pod, key)
    if (permit instanceof SpillwayError) return false
    pod.answered(permit, answer)
    await clock.advance(10)
    return true
  }
  /** Every pod tries again and again. Returns how many requests the vendor got. */
  const hammer = async (forMs: number, answer: KeyAnswer, everyMs = SECOND_MS) => {
    let sent = 0
    for (let ms = 0; ms < forMs; ms += everyMs) {
      for (const pod of fleet) if (await request(pod, answer)) sent++
      await clock.advance(everyMs)
    }
    return sent
  }
  const operator = createOperator({ store, guards: { openai: {} } })
  const reports = async () => (await clock.until(operator.fleet())).guards[0]?.keys
  const [one, two, three] = fleet as [KeyQuarantine, KeyQuarantine, KeyQuarantine]
  return { clock, distant, fleet, one, two, three, enter, request, hammer, operator, reports }
}

function recordEvents(): SpillwayEvent[] {
  const events: SpillwayEvent[] = []
  onTestFinished(onEvent((event) => events.push(event)))
  return events
}

describe('exhausted key', () => {
  it.each([
    ['5 minutes without a known reset time', undefined, UNKNOWN_RESET_MS],
    ['31 days at most', 400 * 24 * HOUR_MS, LONGEST_RESET_MS],
  ])('an exhausted key is quarantined for %s', async (_, resetMs, forMs) => {
    const { one, two, request } = setup()
    await request(one, exhausted(resetMs))
    for (const { state, untilMs } of [one.states()[0]!, two.states()[0]!]) {
      expect(state).toBe('quarantined')
      expect(untilMs).toBeGreaterThan(forMs - SECOND_MS)
      expect(untilMs).toBeLessThanOrEqual(forMs)
    }
  })

  it('an exhausted key is refused from memory by all pods until its reset time', async () => {
    const { clock, one, two, distant, request, enter } = setup()
    await request(one, exhausted(HOUR_MS))
    const before = structuredClone(distant.trips)
    for (const pod of [one, two]) {
      const refusal = pod.enter(MAIN)
      expect(refusal).toBeInstanceOf(SpillwayError)
      expect(refusal).toMatchObject({ code: 'CIRCUIT_OPEN', status: 503, details: { key: 'main' } })
    }
    expect(distant.trips).toEqual(before)
    expect(one.refusal(SPARE)).toBeUndefined()
    expect(await enter(two, SPARE)).not.toBeInstanceOf(SpillwayError)
    await clock.advance(HOUR_MS)
    expect(await request(two, ACCEPTED)).toBe(true)
    expect(one.refusal(MAIN)).toBeUndefined()
  })

  it('an exhausted key gets at most one request per reset window once it is quarantined', async () => {
    const { fleet, hammer, request, one } = setup(5)
    await request(one, exhausted(MINUTE_MS))
    expect(fleet.every((pod) => pod.refusal(MAIN) !== undefined)).toBe(true)
    for (let window = 0; window < 10; window++) {
      expect(await hammer(MINUTE_MS, exhausted(MINUTE_MS))).toBeLessThanOrEqual(1)
    }
  })

  it('a key that stays exhausted is probed at growing intervals of up to an hour', async () => {
    const { hammer, request, one } = setup(2)
    await request(one, exhausted())
    const perHour = []
    for (let hour = 0; hour < 4; hour++)
      perHour.push(await hammer(HOUR_MS, exhausted(), 20 * SECOND_MS))
    expect(perHour[0]).toBeLessThan(9)
    expect(perHour[3]).toBeLessThanOrEqual(1)
    expect(perHour[3]).toBeLessThan(perHour[0] as number)
  })

  it('answers to requests that were in flight do not shorten the quarantine or renew it later', async () => {
    const { clock, one, two, enter, request } = setup()
    const late = (await enter(two)) as KeyPermit
    const later = (await enter(two)) as KeyPermit
    await request(one, exhausted(HOUR_MS))
    two.answered(late, exhausted(SECOND_MS))
    await clock.advance(MINUTE_MS)
    expect(two.states()[0]).toMatchObject({ state: 'quarantined', reason: 'quota-exhausted' })
    await clock.advance(HOUR_MS)
    await request(one, ACCEPTED)
    two.answered(later, exhausted(HOUR_MS))
    await clock.advance(SECOND_MS)
    expect(two.refusal(MAIN)).toBeUndefined()
  })

  it('the probe of a pod that died is free again', async () => {
    const { clock, one, two, enter, request } = setup()
    await request(one, exhausted(MINUTE_MS))
    await clock.advance(MINUTE_MS)
    expect(await enter(one)).toMatchObject({ probe: { probe: true } })
    await one.close()
    expect(await enter(two)).toBeInstanceOf(SpillwayError)
    await clock.advance(10 * SECOND_MS)
    expect(await request(two, ACCEPTED)).toBe(true)
  })

  it('a probe without an answer neither releases the key nor prolongs its quarantine', async () => {
    const { clock, one, two, request } = setup()
    await request(one, exhausted(MINUTE_MS))
    await clock.advance(MINUTE_MS)
    await request(one, UNKNOWN)
    expect(two.states()[0]).toMatchObject({ state: 'probing' })
    expect(await request(two, ACCEPTED)).toBe(true)
    expect(two.states()[0]).toMatchObject({ state: 'usable' })
  })

  it('a refusal names key, reason and remedy, and asks clients to return within an hour', async () => {
    const { one, request } = setup(1)
    await request(one, exhausted(20 * HOUR_MS))
    const error = one.refusal(MAIN) as SpillwayError
    expect(error.message).toMatch(
      /^openai: the key main is quarantined: its quota is exhausted \(for 7\d{4} s\); add another key/,
    )
    expect(error.retryAfterMs).toBe(HOUR_MS)
  })

  it('a quarantine that could not be stored is found again by the next request', async () => {
    const { one, two, distant, request } = setup()
    distant.down = true
    await request(one, exhausted(HOUR_MS))
    distant.down = false
    expect(await request(one, exhausted(HOUR_MS))).toBe(true)
    expect(two.refusal(MAIN)).toMatchObject({ code: 'CIRCUIT_OPEN' })
  })

  it('a probe that finds its key exhausted while the store is down keeps the key in quarantine', async () => {
    const { clock, one, two, distant, enter, request } = setup()
    await request(one, exhausted(MINUTE_MS))
    await clock.advance(MINUTE_MS)
    const probe = (await enter(one)) as KeyPermit
    expect(probe.probe).toBeDefined()
    distant.down = true
    one.answered(probe, exhausted(HOUR_MS))
    await clock.advance(10)
    distant.down = false
    await clock.advance(3 * SECOND_MS)
    for (const pod of [one, two]) expect(pod.states()[0]).toMatchObject({ state: 'quarantined' })
  })
})

describe('invalid key', () => {
  it('three answers in a row that call a key invalid quarantine it, whichever pods got them', async () => {
    const { fleet, one, two, three, request } = setup()
    await request(one, INVALID)
    await request(two, INVALID)
    expect(one.refusal(MAIN)).toBeUndefined()
    await request(three, INVALID)
    for (const pod of fleet) expect(pod.refusal(MAIN)).toMatchObject({ code: 'CIRCUIT_OPEN' })
  })

  it('an accepted request resets the count of invalid answers in a row', async () => {
    const { clock, one, two, request } = setup()
    await request(one, INVALID)
    await request(one, INVALID)
    await clock.advance(2 * SECOND_MS)
    await request(two, ACCEPTED)
    await request(one, INVALID)
    await request(one, INVALID)
    expect(one.refusal(MAIN)).toBeUndefined()
    await request(one, INVALID)
    expect(one.refusal(MAIN)).toBeDefined()
  })

  it('an invalid key recovers by itself: one probe at growing intervals', async () => {
    const { clock, fleet, hammer, request, one } = setup()
    for (const pod of fleet) await request(pod, INVALID)
    expect(await hammer(50 * SECOND_MS, INVALID)).toBe(0)
    expect(await hammer(10 * MINUTE_MS, INVALID)).toBeLessThanOrEqual(3)
    await clock.advance(HOUR_MS)
    expect(await request(one, ACCEPTED)).toBe(true)
    for (const pod of fleet) expect(pod.refusal(MAIN)).toBeUndefined()
  })

  it('another secret under the same name is not quarantined', async () => {
    const { clock, one, fleet, request, reports } = setup()
    for (const pod of fleet) await request(pod, INVALID)
    expect(await reports()).toMatchObject([{ key: 'main', reason: 'invalid-key' }])
    for (const pod of fleet) pod.use([ROTATED, SPARE])
    expect(await request(one, ACCEPTED, ROTATED)).toBe(true)
    await clock.advance(SECOND_MS)
    expect(await reports()).toEqual([])
  })

  it('the id of a key does not contain its secret', () => {
    expect(MAIN.id).toMatch(/^main#[0-9a-f]{12}$/)
    expect(MAIN.id).not.toBe(ROTATED.id)
  })
})

describe('operator and reports', () => {
  it('an operator quarantines and releases a key by its name, whatever its secret is', async () => {
    const { clock, one, two, operator, request, reports } = setup()
    const about = { guard: 'openai', key: 'main', by: 'ann' }
    await clock.until(operator.perform({ ...about, action: 'quarantine-key', forMs: '2h' }))
    await clock.advance(10)
    expect(two.refusal(MAIN)?.message).toContain('an operator quarantined it')
    expect(two.refusal(ROTATED)).toBeDefined()
    expect(await reports()).toMatchObject([{ key: 'main', reason: 'operator' }])
    await clock.until(operator.perform({ ...about, action: 'release-key' }))
    await clock.advance(10)
    expect(await request(one, ACCEPTED)).toBe(true)
    expect(await reports()).toEqual([])
  })

  it('an operator releases an exhausted key before its reset time', async () => {
    const { clock, one, two, operator, request } = setup()
    await request(one, exhausted(HOUR_MS))
    const release = { action: 'release-key', guard: 'openai', key: 'main', by: 'ann' } as const
    const done = await clock.until(operator.perform(release))
    expect(done).toMatchObject({ key: 'main', message: 'released key main' })
    await clock.advance(10)
    expect(await request(two, ACCEPTED)).toBe(true)
    const again = await clock.until(operator.perform(release))
    expect(again.message).toBe('key main was not quarantined')
  })

  it('reports and states of all pods name the reason and the reset time', async () => {
    const { clock, one, two, request, reports } = setup()
    await request(one, exhausted(HOUR_MS))
    await clock.advance(SECOND_MS)
    expect(two.states()).toMatchObject([
      { key: 'main', state: 'quarantined', reason: 'quota-exhausted' },
      { key: 'spare', state: 'usable', reason: undefined, untilMs: undefined },
    ])
    expect(two.states()[0]?.untilMs).toBeGreaterThan(HOUR_MS - 2 * SECOND_MS)
    const [report] = (await reports()) ?? []
    expect(report).toMatchObject({ key: 'main', state: 'quarantined', reason: 'quota-exhausted' })
    expect(Date.parse(report?.until ?? '') - clock.wallMs()).toBeGreaterThan(HOUR_MS / 2)
    await clock.advance(HOUR_MS)
    expect(await reports()).toMatchObject([{ state: 'probing', until: undefined }])
  })

  it('a quarantine and its end are events of the vendor, and no breaker events', async () => {
    const events = recordEvents()
    const { clock, one, request } = setup(1)
    await request(one, exhausted(MINUTE_MS))
    await clock.advance(MINUTE_MS)
    await request(one, ACCEPTED)
    const about = { name: 'openai', key: 'main' }
    expect(events).toEqual([
      { ...about, type: 'key.quarantined', reason: 'quota-exhausted', forMs: expect.any(Number) },
      { ...about, type: 'key.released' },
    ])
  })

  it('successes of a key without bad answers are not reported to the store', async () => {
    const { one, request, distant } = setup(1)
    for (let times = 0; times < 100; times++) await request(one, ACCEPTED)
    expect(distant.trips.report).toBe(0)
  })
})
