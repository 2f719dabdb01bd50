import { inspect } from 'node:util'
import { describe, expect, it } from 'vitest'
import { refuse, SpillwayError } from './errors.js'
import { project } from './project.js'

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
  it('SpillwayError has code, stage, scope, status, retryAfterMs and details', () => {
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

  it('SpillwayError is an Error and prints its message', () => {
    expect(queueFull()).toBeInstanceOf(Error)
    expect(inspect(queueFull())).toContain('10 of 10 slots in use')
    expect(String(queueFull())).toBe('SpillwayError: 10 of 10 slots in use')
  })

  it('SpillwayError captures no stack, and other errors keep theirs', () => {
    expect(queueFull().stack).toBeUndefined()
    expect(new Error('other').stack).toContain('    at ')
  })

  it('SpillwayError builds its message only when it is read', () => {
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

  it('status of a SpillwayError can be overridden and its message prefixed, as frameworks do', () => {
    const error = queueFull({ status: 429 })
    error.message = `upstream: ${error.message}`
    expect(error.status).toBe(429)
    expect(error.message).toBe('upstream: 10 of 10 slots in use')
  })

  it('SpillwayError serialises to JSON with everything a client needs', () => {
    expect(JSON.parse(JSON.stringify(queueFull()))).toEqual({
      code: 'QUEUE_FULL',
      message: '10 of 10 slots in use',
      stage: 'concurrency',
      scope: 'local',
      retryAfterMs: 250,
      status: 503,
      details: { active: 10, limit: 10 },
      url: `${project.documentation}/reference/error-codes#queue-full`,
    })
  })

  it('SpillwayError keeps its cause', () => {
    const cause = new Error('socket closed')
    expect(queueFull({ cause }).cause).toBe(cause)
    expect(Object.hasOwn(queueFull(), 'cause')).toBe(false)
  })
})

describe('refuse()', () => {
  it('refuse() rejects with the same error object', async () => {
    const error = queueFull()
    await expect(refuse(error)).rejects.toBe(error)
  })
})
