import { SpillwayError } from 'spillway'
import { describe, expect, it } from 'vitest'
import { tooLarge } from '../request/body/body.js'
import { deadlineMs } from '../request/deadline.js'
import { faultOfParser } from '../server/parser-errors.js'
import { clientMessage, type Fault, faultOf, RequestError, SHUTTING_DOWN } from './errors.js'

const coded = (code: string, options?: ErrorOptions) =>
  Object.assign(new Error('connect 10.0.0.1:443', options), { code })

describe('faults of requests', () => {
  it('refusals of Spillway and of the request are faults themselves', () => {
    const refused = new RequestError({ status: 400, code: 'BAD', message: 'bad' })
    expect(faultOf(refused, 'openai', true)).toBe(refused)
    expect(refused.closes).toBe(false)
    const shed = new SpillwayError({
      ...{ code: 'SHED', stage: 'shed', scope: 'local' },
      explain: () => 'shed',
    } as ConstructorParameters<typeof SpillwayError>[0])
    expect(faultOf(shed, 'openai', true)).toBe(shed)
  })

  it('an error before a vendor was called is a 500 without details', () => {
    expect(faultOf(new Error('secret'), undefined, false)).toEqual({
      status: 500,
      code: 'INTERNAL',
      message: 'the gateway failed; its log has the error',
    })
  })

  it.each([
    [coded('ECONNRESET'), 'ECONNRESET'],
    [new TypeError('fetch failed', { cause: coded('ENOTFOUND') }), 'ENOTFOUND'],
    [new TypeError('10.0.0.1'), 'TypeError'],
    [{}, 'unknown error'],
  ])('an error of a vendor is a 502 with its code and not its message: %s', (error, reason) => {
    const fault = faultOf(error, 'openai', true)
    expect(fault).toMatchObject({ status: 502, code: 'VENDOR_ERROR' })
    expect(fault.message).toBe(
      `openai could not be reached or ended its answer early: ${reason}; retry, or check the vendor`,
    )
    expect(faultOf(error, undefined, true).message).toMatch(/^the vendor could not/)
  })
})

describe('messages of errors', () => {
  const messageOf = (message: string, retryAfterMs?: number) =>
    clientMessage({ status: 503, code: 'C', message, retryAfterMs })

  it('an error message has the name of the gateway and the time until a retry', () => {
    expect(messageOf('openai: the circuit is open', 29_200)).toBe(
      'Spillway gateway: openai: the circuit is open; retry in 30 s',
    )
    expect(messageOf('openai: used up; retry in 61988.9 ms', 61_988.9)).toBe(
      'Spillway gateway: openai: used up; retry in 62 s',
    )
    expect(messageOf('the body is empty')).toBe('Spillway gateway: the body is empty')
  })

  it('times in a message are rounded', () => {
    expect(messageOf('within 12.34 ms, 999 ms, 1500 ms, 119000 ms, 3600000.5 ms')).toBe(
      'Spillway gateway: within 12 ms, 999 ms, 1.5 s, 119 s, 60 min',
    )
  })
})

describe('advice in messages of errors', () => {
  const timeout = (text: string): Fault => ({
    status: 504,
    code: 'CALL_TIMEOUT',
    message: `openai: timed out, ${text}`,
  })

  it.each<[Fault, string]>([
    [
      timeout('no data for 1000 ms (timeout.idleMs)'),
      'openai: timed out, no data for 1 s (timeout.idleMs); retry, or raise this option',
    ],
    [
      timeout('no answer within 90500.2 ms (timeout.callMs)'),
      'openai: timed out, no answer within 90.5 s (timeout.callMs); retry, or raise this option',
    ],
    [
      {
        status: 504,
        code: 'DEADLINE_EXCEEDED',
        message: 'openai: the deadline passed after 1200 ms in the queue',
      },
      'openai: the deadline passed after 1.2 s in the queue; retry with more time (spillway-deadline-ms or timeout.totalMs)',
    ],
    [SHUTTING_DOWN, 'the gateway is shutting down; retry in 1 s'],
    [tooLarge(50), 'the body is larger than body.maxBytes (50 bytes); send less or raise it'],
    [
      faultOf(coded('ECONNRESET'), 'openai', true),
      'openai could not be reached or ended its answer early: ECONNRESET; retry, or check the vendor',
    ],
    [faultOf(new Error('secret'), 'openai', false), 'the gateway failed; its log has the error'],
    [
      faultOfParser('HPE_HEADER_OVERFLOW') as Fault,
      'the headers are larger than server.maxHeaderBytes; send less or raise it',
    ],
    [
      faultOfParser('ERR_HTTP_REQUEST_TIMEOUT') as Fault,
      'the headers did not arrive within server.headersMs; retry',
    ],
  ])('a message names the option and says what to do: %j', (fault, expected) => {
    expect(clientMessage(fault)).toBe(`Spillway gateway: ${expected}`)
  })
})

describe('spillway-deadline-ms', () => {
  it('the time left is read in milliseconds, and time that has run out is 0', () => {
    expect(deadlineMs('1500')).toBe(1_500)
    expect(deadlineMs('0')).toBe(0)
    expect(deadlineMs('-5')).toBe(0)
    expect([deadlineMs(undefined), deadlineMs('')]).toEqual([Number.NaN, Number.NaN])
  })

  it.each(['soon', '5s', ['1', '2']])('the value %j is refused as 400', (value) => {
    const refusal = { status: 400, code: 'INVALID_DEADLINE' }
    expect(() => deadlineMs(value)).toThrow(expect.objectContaining(refusal))
  })
})
