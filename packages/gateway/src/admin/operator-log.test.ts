import type { RecentAction } from 'spillway/operate'
import { createVirtualClock } from 'spillway/testing'
import { describe, expect, it } from 'vitest'
import { OperatorLog } from './operator-log.js'

const action = (id: string, own = false): RecentAction => ({
  id,
  own,
  ageMs: 12.3,
  action: 'pause',
  guard: 'openai',
  by: 'ada',
  from: undefined,
  lane: undefined,
  forMs: 1_000,
  unit: undefined,
  limit: undefined,
  message: 'paused all lanes',
})

describe('OperatorLog', () => {
  it('gateway logs an action of another pod once, and none of its own', async () => {
    let answers: RecentAction[] | Error = [action('a'), action('b', true)]
    const lines: object[] = []
    const recent = async () => {
      if (answers instanceof Error) throw answers
      return answers
    }
    const log = new OperatorLog(
      () => ({ recent }),
      (facts) => lines.push(facts),
      createVirtualClock(),
    )
    await log.read()
    await log.read()
    expect(lines).toEqual([
      expect.objectContaining({ name: 'openai', action: 'pause', by: 'ada', ageMs: 12 }),
    ])
    // After an outage the store is read again, and known actions are not logged twice.
    answers = new Error('away')
    await log.read()
    answers = [action('a'), action('c')]
    await log.read()
    expect(lines).toHaveLength(2)
  })

  it('gateway reads the actions of other pods every 5 s until it is closed', async () => {
    const clock = createVirtualClock()
    let reads = 0
    const recent = async () => {
      reads++
      return []
    }
    const log = new OperatorLog(
      () => ({ recent }),
      () => {},
      clock,
    )
    log.begin()
    await clock.advance(4_999)
    expect(reads).toBe(0)
    await clock.advance(1)
    expect(reads).toBe(1)
    await clock.advance(10_000)
    expect(reads).toBe(3)
    log.close()
    await clock.advance(60_000)
    expect(reads).toBe(3)
  })
})
