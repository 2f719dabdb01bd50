import { inspect } from 'node:util'
import { describe, expect, it } from 'vitest'
import { refuse, SpillwayError } from './errors.js'

function queueFull(overrides: object = {}): SpillwayError {
  return new SpillwayError({
    code: 'QUEUE_FULL',
    stage: 'concurrency',
    scope: 'local',
    retryAfterMs: 250,
    details: { active: 10, limit: 10 },
    explain: ({ active, limit }) => `${active} of ${limit} slots in use`,
    ...overrides,
  })
}

describe('SpillwayError', () => {
  it('tells code, stage, scope, status, retry time and the numbers behind the decision', () => {
    const error = queueFull()
    expect(error).toMatchObject({
      name: 'SpillwayError',
      code: 'QUEUE_FULL',
      stage: 'concurrency',
      scope: 'local',
      status: 503,
      retryAfterMs: 250,
      details: { active: 10, limit: 10 },
    })
    expect(error.message).toBe('10 of 10 slots in use')
  })

  it('is a real error to Node and to whoever prints it', () => {
    expect(queueFull()).toBeInstanceOf(Error)
    expect(inspect(queueFull())).toContain('10 of 10 slots in use')
    expect(String(queueFull())).toBe('SpillwayError: 10 of 10 slots in use')
  })

  it('captures no stack, and leaves the stacks of other errors alone', () => {
    expect(queueFull().stack).toBeUndefined()
    expect(new Error('other').stack).toContain('    at ')
  })

  it('builds its message only when somebody reads it', () => {
    let built = 0
    const error = queueFull({
      explain: () => {
        built++
        return 'text'
      },
    })
    expect(built).toBe(0)
    expect(error.message).toBe('text')
  })

  it('lets the status be overridden and the message be prefixed, as frameworks do', () => {
    const error = queueFull({ status: 429 })
    error.message = `upstream: ${error.message}`
    expect(error.status).toBe(429)
    expect(error.message).toBe('upstream: 10 of 10 slots in use')
  })

  it('turns into JSON with everything a client needs', () => {
    expect(JSON.parse(JSON.stringify(queueFull()))).toEqual({
      code: 'QUEUE_FULL',
      message: '10 of 10 slots in use',
      stage: 'concurrency',
      scope: 'local',
      retryAfterMs: 250,
      status: 503,
      details: { active: 10, limit: 10 },
    })
  })

  it('keeps its cause', () => {
    const cause = new Error('socket closed')
    expect(queueFull({ cause }).cause).toBe(cause)
    expect(Object.hasOwn(queueFull(), 'cause')).toBe(false)
  })
})

describe('refuse', () => {
  it('rejects with the very error', async () => {
    const error = queueFull()
    await expect(refuse(error)).rejects.toBe(error)
  })
})
