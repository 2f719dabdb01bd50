import { describe, expect, it } from 'vitest'
import { fc } from '../../../test/fast-check.js'
import { type Claim, claimedBefore, shareOf } from './equal-shares.js'

const claim = fc.record({
  got: fc.nat(50),
  most: fc.option(fc.array(fc.nat(40), { minLength: 1, maxLength: 1 }), { nil: undefined }),
})

describe('equal shares', () => {
  it('a share is the most that a pod can have with all earlier claims covered', () => {
    fc.assert(
      fc.property(
        fc.array(claim, { maxLength: 6 }),
        fc.nat(50),
        fc.nat(200),
        (claims, got, free) => {
          const covered = (share: number) =>
            share + claimedBefore(claims, 0, got + share) <= free || share === 0
          const share = shareOf(claims, 0, got, free)
          expect(covered(share)).toBe(true)
          expect(covered(share + 1)).toBe(false)
        },
      ),
    )
  })

  it.for<[string, Claim[], number, number]>([
    ['half of what is free beside an equal pod', [{ got: 0, most: undefined }], 0, 50],
    ['what an equal pod does not claim', [{ got: 0, most: [10] }], 0, 90],
    ['half of the rest after a pod that was granted less', [{ got: 0, most: undefined }], 20, 40],
    ['nothing while a pod that was granted less claims all', [{ got: 0, most: undefined }], 100, 0],
    ['all of it without other pods', [], 70, 100],
  ])('a pod gets %s', ([, claims, got, share]) => {
    expect(shareOf(claims, 0, got, 100)).toBe(share)
  })
})
