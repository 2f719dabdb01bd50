import { SpillwayError } from 'spillway'
import { createLoadShedder } from 'spillway/local'
import { describe, expect, it } from 'vitest'
import { parseItem } from '../../test/structured-field.js'
import {
  type Admitted,
  addAdmittedHeaders,
  addFallbackHeaders,
  addRefusedHeaders,
} from './decision-headers.js'

const ADMITTED: Admitted = {
  vendor: 'openai',
  lane: 'gpt-4',
  attempts: 2,
  waitedMs: 12.4,
  step: 0,
  standing: undefined,
  shadow: undefined,
}

function admitted(changes: Partial<Admitted>): Record<string, string> {
  const headers: string[] = []
  addAdmittedHeaders(headers, { ...ADMITTED, ...changes })
  const pairs: [string, string][] = []
  for (let i = 0; i < headers.length; i += 2) pairs.push([headers[i]!, headers[i + 1]!])
  return Object.fromEntries(pairs)
}

function refused(code: SpillwayError['code'], details = {}, retryAfterMs?: number) {
  const headers: Record<string, string | string[]> = {}
  const error = new SpillwayError({
    code,
    stage: 'user-limit',
    scope: 'shared',
    details,
    explain: () => code,
    ...(retryAfterMs !== undefined && { retryAfterMs }),
  })
  addRefusedHeaders(headers, error, 3)
  return headers
}

describe('decision headers of an answer', () => {
  it('an answer of the first target is admitted', () => {
    expect(admitted({})).toEqual({
      'spillway-decision': 'admitted;vendor="openai";lane="gpt-4";waited-ms=12',
      'spillway-vendor': 'openai',
      'spillway-attempts': '2',
      'spillway-degraded': '?0',
    })
  })

  it('an answer of a later target is a fallback with its step', () => {
    expect(admitted({ step: 1 })).toMatchObject({ 'spillway-degraded': '?1' })
    expect(admitted({ step: 2, lane: undefined, waitedMs: 0.5 })).toMatchObject({
      'spillway-decision': 'fallback;vendor="openai";waited-ms=1;step=2',
      'spillway-degraded': '?1',
    })
  })

  it('an answer of a smaller model names it', () => {
    expect(admitted({ pressed: { model: 'gpt-4o-mini' } })).toMatchObject({
      'spillway-decision': 'fallback;vendor="openai";lane="gpt-4";waited-ms=12',
      'spillway-degraded': 'model;name="gpt-4o-mini"',
    })
    expect(admitted({ pressed: { model: undefined } })).toMatchObject({ 'spillway-degraded': '?1' })
  })

  it('an answer without a vendor has the kind of fallback and the reason', () => {
    const headers = {}
    const decision = { reason: 'circuit-open', attempts: 0, waitedMs: 0.2, lastVendor: undefined }
    addFallbackHeaders(headers, { ...decision, step: 'cached', ageMs: 12_400 }, 200)
    expect(headers).toEqual({
      'spillway-decision': 'fallback;answer=cached;reason=circuit-open;waited-ms=0',
      'spillway-attempts': '0',
      'spillway-degraded': 'cached;age=12',
    })
  })

  it('stages in shadow that would have refused are named', () => {
    const { 'spillway-decision': decision } = admitted({ shadow: ['shed', 'breaker'] })
    expect(decision).toMatch(/;shadow="shed breaker"$/)
  })

  it('quotes and backslashes of a lane are escaped, and other characters replaced', () => {
    const { 'spillway-decision': decision } = admitted({ lane: 'a"b\\c\u00e9\r\nd ~' })
    expect(decision).toContain(';lane="a\\"b\\\\c???d ~";')
  })

  it('the rest of a user limit is reported in rate limit headers', () => {
    const standing = {
      level: 'user',
      limit: 10,
      windowMs: 60_000,
      remaining: 7,
      resetMs: 1_500,
    } as NonNullable<Admitted['standing']>
    expect(admitted({ standing })).toMatchObject({
      'ratelimit-policy': '"user";q=10;w=60',
      ratelimit: '"user";r=7;t=2',
    })
    expect(admitted({})).not.toHaveProperty('ratelimit')
  })
})

describe('decision headers of a refusal', () => {
  it('a refusal has its stage, reason, scope, numbers and attempts', () => {
    const details = { retryAfterMs: 5, queueLength: 2.34567, shadow: true, off: false, name: 'a"b' }
    expect(refused('QUEUE_FULL', { ...details, bad: Number.NaN, none: undefined })).toEqual({
      'spillway-decision':
        'refused;stage=user-limit;reason=QUEUE_FULL;scope=shared' +
        ';queue-length=2.346;shadow=?1;off=?0;name="a\\"b"',
      'spillway-attempts': '3',
      'x-should-retry': 'false',
      'spillway-retried': '1',
    })
  })

  it('the decision on a shed call names its code and its signal in two parameters', async () => {
    const shedder = createLoadShedder({ maxInFlight: 1 })
    const visit = shedder.enter()
    const error = await shedder.run(() => {}).catch((refusal: SpillwayError) => refusal)
    visit?.end()
    shedder.close()
    const headers: Record<string, string | string[]> = {}
    addRefusedHeaders(headers, error as SpillwayError, 0)
    const { value, parameters } = parseItem(headers['spillway-decision'] as string)
    expect(value).toEqual({ token: 'refused' })
    expect(parameters).toMatchObject({
      stage: { token: 'shed' },
      reason: { token: 'SHED' },
      'shed-reason': 'inFlight',
    })
  })

  it('the decision is a structured field whatever names and numbers the details have', () => {
    const details = {
      stage: 'own',
      reason: 'own',
      scope: 'own',
      Pressure: 1,
      pressure: 2,
      'queue length': 3,
      '9lives': 4,
      größe: 5,
      huge: 1e21,
      large: 1e14 + 0.5,
      tiny: -1e-9,
      never: Number.NEGATIVE_INFINITY,
      text: 'a"b\\c\u00e9\r\n',
    }
    const { parameters } = parseItem(refused('SHED', details)['spillway-decision'] as string)
    expect(parameters).toEqual({
      stage: { token: 'user-limit' },
      reason: { token: 'SHED' },
      scope: { token: 'shared' },
      'user-limit-stage': 'own',
      'user-limit-reason': 'own',
      'user-limit-scope': 'own',
      pressure: 1,
      'user-limit-pressure': 2,
      'queue-length': 3,
      'detail-9lives': 4,
      'gr--e': 5,
      large: 1e14 + 1,
      tiny: 0,
      text: 'a"b\\c???',
    })
  })

  it('the decision on an admitted request is a structured field', () => {
    const headers = admitted({ lane: 'a"b\\c\u00e9', step: 2, shadow: ['shed', 'breaker'] })
    expect(parseItem(headers['spillway-decision'] as string)).toEqual({
      value: { token: 'fallback' },
      parameters: {
        vendor: 'openai',
        lane: 'a"b\\c?',
        'waited-ms': 12,
        step: 2,
        shadow: 'shed breaker',
      },
    })
  })

  it('a fault that the gateway reports itself has its code and its wait', () => {
    const headers: Record<string, string | string[]> = {}
    const fault = { status: 503, code: 'SHUTTING_DOWN', message: '', retryAfterMs: 1_500 }
    addRefusedHeaders(headers, fault, 0)
    expect(headers).toEqual({
      'spillway-decision': 'refused;reason=SHUTTING_DOWN',
      'spillway-attempts': '0',
      'retry-after': '2',
      'retry-after-ms': '1500',
    })
  })

  it('a request that a vendor has received should not be retried by the client', () => {
    expect(refused('CALL_TIMEOUT')).toMatchObject({
      'x-should-retry': 'false',
      'spillway-retried': '1',
    })
  })

  it('Retry-After is in whole seconds of at least 1, and retry-after-ms is rounded up', () => {
    expect(refused('SHED', {}, 0)).toMatchObject({ 'retry-after': '1', 'retry-after-ms': '1' })
    expect(refused('SHED', {}, 1_000)).toMatchObject({ 'retry-after': '1' })
    expect(refused('SHED', {}, 1_000.2)).toMatchObject({
      'retry-after': '2',
      'retry-after-ms': '1001',
    })
    expect(refused('SHED')).not.toHaveProperty('retry-after')
  })

  it('a user limit that is used up is reported in rate limit headers', () => {
    const details = { level: 'user', limit: 10, windowMs: 60_000, remaining: 0 }
    expect(refused('USER_LIMITED', details, 1_500)).toMatchObject({
      'ratelimit-policy': '"user";q=10;w=60',
      ratelimit: '"user";r=0;t=2',
    })
    const { remaining: _, ...withoutRest } = details
    expect(refused('USER_LIMITED', withoutRest)).toMatchObject({ ratelimit: '"user";r=0;t=0' })
    expect(refused('USER_LIMITED', { level: 'user' })).not.toHaveProperty('ratelimit')
    expect(refused('USER_LIMITED', { level: 'user', limit: 1 })).not.toHaveProperty('ratelimit')
    expect(refused('VENDOR_LIMITED', details)).not.toHaveProperty('ratelimit')
  })
})
