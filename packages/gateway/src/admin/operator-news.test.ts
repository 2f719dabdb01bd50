import type { RecentAction } from 'spillway/operate'
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
})
