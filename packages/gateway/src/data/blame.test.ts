import { SpillwayError } from 'spillway'
import { describe, expect, it } from 'vitest'
import { absolve, blame, classifyByBlame } from './blame.js'

const late = new SpillwayError({
  code: 'DEADLINE_EXCEEDED',
  stage: 'call',
  scope: 'local',
  explain: () => 'late',
})
const signalOf = () => new AbortController().signal

describe('outcomes caused by the client', () => {
  it('an error while the client still sends its body is ignored', () => {
    const signal = signalOf()
    blame(signal, 'uploading')
    expect(classifyByBlame({ error: new Error('reset'), signal })).toBe('ignored')
    expect(classifyByBlame({ value: 'fine', signal })).toBeUndefined()
    absolve(signal)
    expect(classifyByBlame({ error: new Error('reset'), signal })).toBeUndefined()
  })

  it('a deadline that the client set is ignored when it passes, other errors are not', () => {
    const signal = signalOf()
    blame(signal, 'impatient')
    expect(classifyByBlame({ error: late, signal })).toBe('ignored')
    expect(classifyByBlame({ error: new Error('reset'), signal })).toBeUndefined()
  })

  it('errors of other requests keep their outcome', () => {
    blame(signalOf(), 'uploading')
    expect(classifyByBlame({ error: late, signal: signalOf() })).toBeUndefined()
    expect(classifyByBlame({ error: late })).toBeUndefined()
  })
})
