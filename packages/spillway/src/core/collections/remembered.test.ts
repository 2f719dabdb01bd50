import { describe, expect, it } from 'vitest'
import { remembered } from './remembered.js'

describe('remembered', () => {
  const counting = () => {
    const computed: string[] = []
    const isEven = remembered((text) => {
      computed.push(text)
      return text.length % 2 === 0 ? 'even' : undefined
    })
    return { computed, isEven }
  }

  it('a remembered result is computed once for each text, also if it is undefined', () => {
    const { computed, isEven } = counting()
    expect(['ab', 'abc', 'ab', 'abc'].map(isEven)).toEqual(['even', undefined, 'even', undefined])
    expect(computed).toEqual(['ab', 'abc'])
  })

  it('the result of a text of more than 200 characters is computed each time', () => {
    const { computed, isEven } = counting()
    const long = 'x'.repeat(202)
    expect([isEven(long), isEven(long)]).toEqual(['even', 'even'])
    expect(computed).toHaveLength(2)
  })

  it('at most 1,000 results are remembered at a time', () => {
    const { computed, isEven } = counting()
    for (let text = 0; text < 1_000; text++) isEven(`${text}`)
    isEven('0')
    expect(computed).toHaveLength(1_000)
    isEven('one more')
    isEven('0')
    expect(computed).toHaveLength(1_002)
  })
})
