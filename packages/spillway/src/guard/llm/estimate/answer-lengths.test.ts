import fc from 'fast-check'
import { expect, it } from 'vitest'
import { AnswerLengths } from './answer-lengths.js'

it('estimate is the 95th percentile of the last 100 answers, and at least 1,000 tokens before 20 answers', () => {
  const lengths = fc.array(
    fc.oneof(fc.constantFrom(47, 48), fc.nat(5_000), fc.double({ min: 0, noNaN: true })),
    {
      minLength: 1,
      maxLength: 300,
    },
  )
  fc.assert(
    fc.property(lengths, (all) => {
      const answers = new AnswerLengths()
      for (const each of all) answers.add(each)
      const recent = all.slice(-100).sort((one, other) => one - other)
      const percentile = recent[Math.ceil(0.95 * recent.length) - 1] as number
      expect(answers.estimate()).toBe(recent.length < 20 ? Math.max(1_000, percentile) : percentile)
    }),
  )
})
