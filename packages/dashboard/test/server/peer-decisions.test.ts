import { describe, expect, it } from 'vitest'
import { createVirtualClock } from '../../../spillway/src/testing/index.js'
import { type PeerDecisions, PeerDecisionWatch } from '../../src/feed/peer-decisions.js'
import type { Decision, Decisions } from '../../src/wire/decisions.js'

const decision = (id: number) => ({ id, pod: 'peer', at: id, tookMs: 0 }) as Decision

function setUp() {
  const clock = createVirtualClock()
  const requests: unknown[] = []
  const received: Decisions[] = []
  const answers: (PeerDecisions | Error)[] = []
  const peers = {
    async decisions(cursors: object) {
      requests.push(cursors)
      const answer = answers.shift()
      if (answer instanceof Error) throw answer
      return answer ?? { cursors: cursors as PeerDecisions['cursors'], seen: 0, records: [] }
    },
  }
  const watch = new PeerDecisionWatch(peers, clock, (each) => received.push(each))
  const answer = (cursor: string, ...ids: number[]) => {
    const records = ids.map(decision).toReversed()
    answers.push({ cursors: { 2: cursor }, seen: ids.length, records })
  }
  return { clock, requests, received, answers, answer, watch }
}

const idsOf = (records: readonly Decision[]) => records.map(({ id }) => id)

describe('decisions of peers', () => {
  it('peers are read from the cursor of their last answer, and only while there are readers', async () => {
    const { clock, requests, received, answers, answer, watch } = setUp()
    answer('x.3', 1, 2)
    await clock.advance(5_000)
    expect(requests).toEqual([])
    watch.start()
    await clock.advance(0)
    expect(received.map(({ records }) => idsOf(records))).toEqual([[1, 2]])
    answers.push(new Error('the supervisor is busy'))
    answer('x.4', 3)
    await clock.advance(700)
    expect(requests).toEqual([{}, { 2: 'x.3' }, { 2: 'x.3' }])
    expect(received.map(({ records }) => idsOf(records))).toEqual([[1, 2], [3]])
    watch.stop()
    await clock.advance(5_000)
    expect(requests).toHaveLength(3)
    watch.start()
    await clock.advance(0)
    expect(requests.at(-1)).toEqual({ 2: 'x.4' })
    watch.stop()
  })
})
