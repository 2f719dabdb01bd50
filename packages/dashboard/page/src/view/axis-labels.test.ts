import { describe, expect, it } from 'vitest'
import { formatCount } from '../format'
import { distinct, TIME_STEPS_S } from './axis-labels'

describe('axis labels', () => {
  it('no label of an axis is drawn twice', () => {
    const labels = distinct([0, 0.04, 0.5, 0.52, 1].map(formatCount))
    expect(labels).toEqual(['0', '0.0', '0.5', '', '1'])
    const drawn = labels.filter((label) => label !== '')
    expect(new Set(drawn).size).toBe(drawn.length)
  })

  it('steps of the time axis are whole minutes', () => {
    expect(TIME_STEPS_S.every((seconds) => seconds % 60 === 0)).toBe(true)
  })
})
