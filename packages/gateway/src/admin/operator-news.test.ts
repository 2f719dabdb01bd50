import type { RecentAction } from 'spillway/operate'
import { createVirtualClock } from 'spillway/testing'
import { describe, expect, it } from 'vitest'
import { OperatorNews } from './operator-news.js'

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

describe('OperatorNews', () => {
  it('gateway logs an action of another pod once, and none of its own', async () => {
    let answers: RecentAction[] | Error = [action('a'), action('b', true)]
    const lines: object[] = []
    const recent = async () => {
      if (answers instanceof Error) throw answers
      return answers
    }
    const news = new OperatorNews(
      () => ({ recent }),
      (facts) => lines.push(facts),
      createVirtualClock(),
    )
    await news.look()
    await news.look()
    expect(lines).toEqual([
      expect.objectContaining({ name: 'openai', action: 'pause', by: 'ada', ageMs: 12 }),
    ])
    // An unreachable store is asked again, and known actions are not logged again.
    answers = new Error('away')
    await news.look()
    answers = [action('a'), action('c')]
    await news.look()
    expect(lines).toHaveLength(2)
  })

  it('gateway reads the actions of other pods every 5 s until it is closed', async () => {
    const clock = createVirtualClock()
    let looks = 0
    const recent = async () => {
      looks++
      return []
    }
    const news = new OperatorNews(
      () => ({ recent }),
      () => {},
      clock,
    )
    news.begin()
    await clock.advance(4_999)
    expect(looks).toBe(0)
    await clock.advance(1)
    expect(looks).toBe(1)
    await clock.advance(10_000)
    expect(looks).toBe(3)
    news.close()
    await clock.advance(60_000)
    expect(looks).toBe(3)
  })
})
