import { describe, expect, it } from 'vitest'
import { DecisionLog } from '../../../spillway/src/guard/decisions/decision-log.js'
import { memoryStore } from '../../../spillway/src/shared/index.js'
import { createVirtualClock } from '../../../spillway/src/testing/index.js'
import { decisionView } from '../../src/feed/decision-view.js'
import { queryPods } from '../../src/requests/explain-request.js'
import { FleetExchange } from '../../src/requests/fleet-exchange.js'
import type { NotedRequest } from '../../src/requests/noted-request.js'
import { RequestLog } from '../../src/requests/request-log.js'
import type { Decision } from '../../src/wire/decisions.js'

function setUp(clock = createVirtualClock(), pod = 'pod') {
  const log = new DecisionLog(clock)
  const views = (records: ReturnType<DecisionLog['since']>) =>
    records.map((record) => decisionView(record, pod, 0))
  const requests = new RequestLog({ clock, log, pod, views })
  return { clock, log, requests, views }
}

const request = (id: string, changes: Partial<NotedRequest> = {}): NotedRequest => ({
  id,
  status: 200,
  vendorAttempts: [{ vendor: 'openai', attempts: 1 }],
  durationMs: 5,
  ...changes,
})
const refused = (id: string, code: string, status = 401) =>
  request(id, { status, code, vendorAttempts: [] })

describe('requests of the gateway', () => {
  it('refusals of the gateway itself are listed with their status and without the path', () => {
    const { requests, views, log } = setUp()
    requests.note(refused('r1', 'UNKNOWN_KEY', 401))
    requests.note(refused('r2', 'NOT_FOUND', 404))
    requests.note(refused('r3', 'BODY_TOO_LARGE', 413))
    // Guards list these themselves, and the others are no refusals.
    requests.note(request('r4', { status: 503, code: 'CIRCUIT_OPEN' }))
    requests.note(request('r5'))
    requests.note(refused('r6', 'HUNG_UP', 499))
    expect(views(log.since(1, 10))).toMatchObject([
      { requestId: 'r1', guard: '', code: 'UNKNOWN_KEY', status: 401, stage: 'request' },
      { requestId: 'r2', guard: '', code: 'NOT_FOUND', status: 404 },
      { requestId: 'r3', guard: '', code: 'BODY_TOO_LARGE', status: 413 },
    ])
    expect(views(log.since(1, 10))[0]?.why).toBe(
      'the gateway refused the request: the API key is missing or unknown',
    )
  })

  it('a flood of one refusal is bounded and does not hide a rare one', async () => {
    const { clock, requests, log } = setUp()
    for (let second = 0; second < 10; second++) {
      for (let each = 0; each < 1_000; each++) requests.note(refused(`a${each}`, 'UNKNOWN_KEY'))
      requests.note(refused(`rare${second}`, 'NOT_FOUND', 404))
      await clock.advance(1_000)
    }
    const kept = log.since(1, 10_000)
    expect(kept.length).toBeLessThanOrEqual(70)
    expect(kept.filter(({ code }) => code === 'NOT_FOUND')).toHaveLength(10)
  })

  it('the last 2,000 requests are found by id, names masked and bounded', () => {
    const { requests } = setUp()
    requests.note(request('first', { user: 'sk-planted-0123456789ab', model: 'm'.repeat(500) }))
    expect(requests.find('first').request).toMatchObject({
      pod: 'pod',
      status: 200,
      user: 'sk-…',
      vendorAttempts: [{ vendor: 'openai', attempts: 1 }],
    })
    expect(requests.find('first').request?.model?.length).toBe(200)
    for (let each = 0; each < 2_000; each++) requests.note(request(`r${each}`))
    expect(requests.find('first')).toEqual({ decisions: [] })
    expect(requests.find('r0').request).toBeDefined()
    expect(requests.find('r1999').request).toBeDefined()
  })
})

describe('decisions of the fleet', () => {
  function fleet(pods: readonly string[]) {
    const clock = createVirtualClock()
    const store = memoryStore({ clock })
    const readers = new Set<string>()
    const received = new Map<string, Decision[]>(pods.map((pod) => [pod, []]))
    const members = pods.map((pod) => {
      const own = setUp(clock, pod)
      const exchange = new FleetExchange({
        store,
        clock,
        membership: { pod, live: pods.length },
        hasReaders: () => readers.has(pod),
        since: (id) => own.views(own.log.since(id, 50)),
        find: (requestId) => own.requests.find(requestId),
        onDecisions: (decisions) => received.get(pod)?.push(...decisions),
      })
      return { ...own, exchange }
    })
    const close = () => {
      for (const { exchange } of members) exchange.close()
    }
    return { clock, store, members, readers, received, close }
  }

  it('a reader receives the decisions of all other pods, each once', async () => {
    const { clock, members, readers, received, close } = fleet(['a', 'b', 'c'])
    readers.add('a')
    await clock.advance(5_000)
    for (const [index, { requests }] of members.entries()) {
      requests.note(refused(`r${index}`, 'NOT_FOUND', 404))
    }
    await clock.advance(10_000)
    expect(received.get('a')?.map(({ pod, requestId }) => [pod, requestId])).toEqual([
      ['b', 'r1'],
      ['c', 'r2'],
    ])
    expect(received.get('b')).toEqual([])
    close()
  })

  it('without readers nothing is published', async () => {
    const { clock, store, members, close } = fleet(['a', 'b'])
    members[1]?.requests.note(refused('r1', 'NOT_FOUND', 404))
    await clock.advance(10_000)
    expect(await store.pods.list({ group: 'dashboard:decisions' })).toEqual([])
    close()
  })

  it('what a pod publishes is bounded, and refusals come before answered calls', async () => {
    const { clock, store, members, readers, close } = fleet(['a', 'b'])
    readers.add('a')
    await clock.advance(3_000)
    const log = members[1]?.log as DecisionLog
    members[1]?.requests.note(refused('rare', 'NOT_FOUND', 404))
    const record = { ...log.since(1, 1)[0], code: 'OK', why: 'w'.repeat(200) } as never
    for (let each = 0; each < 400; each++) log.note(record)
    members[1]?.requests.note(refused('last', 'UNKNOWN_KEY', 401))
    await clock.advance(1_000)
    const [entry] = await store.pods.list({ group: 'dashboard:decisions' })
    expect(entry?.snapshot.length).toBeLessThan(40_000)
    expect(entry?.snapshot).toContain('"last"')
    close()
  })

  it('a question about a request is answered by the pod that served it', async () => {
    const { clock, store, members, close } = fleet(['a', 'b', 'c'])
    members[2]?.requests.note(request('r7', { status: 503, code: 'CIRCUIT_OPEN' }))
    const question = { store, clock, random: () => 0.5, members: ['a', 'b', 'c'] }
    const found = await clock.until(queryPods({ ...question, requestId: 'r7' }))
    expect(found.request).toMatchObject({ pod: 'c', status: 503, code: 'CIRCUIT_OPEN' })
    const missing = await clock.until(queryPods({ ...question, requestId: 'unknown-id' }))
    expect(missing).toEqual({
      requestId: 'unknown-id',
      decisions: [],
      podsQueried: 3,
      podsAnswered: 3,
    })
    close()
  })

  it('a pod that does not answer does not hold up a question for more than 4 s', async () => {
    const clock = createVirtualClock()
    const store = memoryStore({ clock })
    const question = { store, clock, random: () => 0.5, requestId: 'r1', members: ['silent'] }
    const answer = await clock.until(queryPods(question))
    expect(answer).toMatchObject({ podsQueried: 1, podsAnswered: 0 })
    expect(clock.now()).toBeLessThanOrEqual(4_100)
  })

  it('entries of another release or of another program are ignored', async () => {
    const { clock, store, readers, received, close } = fleet(['a', 'b'])
    readers.add('a')
    for (const snapshot of [
      '',
      '{',
      '{"v":2}',
      '{"v":1,"decisions":[1,{"id":1}],"answers":null}',
    ]) {
      const pod = `old${snapshot.length}`
      await store.pods.beat({ group: 'dashboard:decisions', pod, lifeUs: 60_000_000, snapshot })
    }
    await clock.advance(3_000)
    expect(received.get('a')).toEqual([])
    close()
  })
})
