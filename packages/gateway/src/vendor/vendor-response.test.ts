import type { BodySigns } from 'spillway/internal'
import { failureOf, RELAYED } from 'spillway/internal'
import { createVirtualClock } from 'spillway/testing'
import { expect, it } from 'vitest'
import { openai } from '../protocols/openai.js'
import type { ResponseSink } from './sent-answer.js'
import type { VendorHandler } from './vendor-client.js'
import { VendorResponse } from './vendor-response.js'

const UNWRITABLE = new TypeError('Invalid character in header content')

/** An answer whose sink throws in one of its functions. */
async function answerTo(throwing: 'write' | 'end') {
  const events: string[] = []
  const note = (event: string) => () => void events.push(event)
  const answer = new VendorResponse(
    { onAbort: () => {} },
    { onEnded: () => {}, holdsError: () => false },
  )
  let vendor: VendorHandler | undefined
  const started = answer.start((handler) => {
    vendor = handler
    return { abort: note('request aborted'), resume: () => {} }
  })
  vendor?.onHead(200, [])
  await started
  answer[RELAYED]({
    chunk: () => {},
    reading: () => {},
    resting: () => {},
    complete: note('complete'),
    truncated: note('truncated'),
    left: note('left'),
  } as unknown as BodySigns)
  const call = (name: 'write' | 'end') => () => {
    if (name === throwing) throw UNWRITABLE
    return true
  }
  const sink: ResponseSink = {
    judgesEnd: false,
    write: call('write'),
    end: call('end'),
    faultAtEnd: () => undefined,
    broken: (error) => void events.push(`broken: ${(error as Error).message}`),
  }
  answer.pipe(sink)
  return { vendor: vendor as VendorHandler, answer, events }
}

const FAILED = ['request aborted', 'left', `broken: ${UNWRITABLE.message}`]

it('a head that cannot be written with the first chunk ends the answer with an error, once', async () => {
  const { vendor, events, answer } = await answerTo('write')
  expect(vendor.onData(Buffer.from('a'))).toBe(true)
  vendor.onData(Buffer.from('b'))
  vendor.onComplete()
  expect(events).toEqual(FAILED)
  expect(answer.failure).toEqual({ error: UNWRITABLE })
})

it('a head that cannot be written at the end of the answer ends it with an error, once', async () => {
  const { vendor, events, answer } = await answerTo('end')
  vendor.onComplete()
  vendor.onComplete()
  expect(events).toEqual(FAILED)
  expect(answer.failure).toEqual({ error: UNWRITABLE })
})

function ask(onNoCost?: () => void) {
  const answer = new VendorResponse(
    { onAbort: () => {} },
    { onEnded: () => {}, holdsError: () => false },
    onNoCost,
  )
  let vendor: VendorHandler | undefined
  const started = answer.start((handler) => {
    vendor = handler
    return { abort: () => {}, resume: () => {} }
  })
  return { vendor: vendor as VendorHandler, started }
}

it('an answer that no client reads yet is paused after 64 KiB', async () => {
  const { vendor, started } = ask()
  vendor.onHead(200, [])
  await started
  expect(vendor.onData(Buffer.alloc(65_535))).toBe(true)
  expect(vendor.onData(Buffer.alloc(1))).toBe(false)
})

it('an answer with an error status costs no tokens, and one with another status does', async () => {
  const statuses: number[] = []
  for (const status of [200, 302, 400, 503]) {
    const { vendor, started } = ask(() => void statuses.push(status))
    vendor.onHead(status, [])
    await started
  }
  expect(statuses).toEqual([400, 503])
})

/** An answer with an error status, whose body has not arrived yet. */
function failed(status: number) {
  const clock = createVirtualClock()
  let abort: (reason: unknown) => void = () => {}
  const context = {
    onAbort(onReason: (reason: unknown) => void) {
      abort = onReason
    },
  }
  const listener = { onEnded: () => {}, holdsError: () => false }
  const answer = new VendorResponse(context, listener, undefined, openai, clock)
  let vendor: VendorHandler | undefined
  const started = answer.start((handler) => {
    vendor = handler
    return { abort: () => {}, resume: () => {} }
  })
  ;(vendor as unknown as VendorHandler).onHead(status, [])
  return {
    answer,
    started,
    vendor: vendor as unknown as VendorHandler,
    clock,
    abort: (reason: unknown) => abort(reason),
  }
}

const TOO_LONG = Buffer.from('{"error":{"code":"context_length_exceeded"}}')

it('an answer with an error status is passed on with its kind once its body has arrived', async () => {
  const { answer, started, vendor } = failed(400)
  vendor.onData(TOO_LONG.subarray(0, 20))
  expect(failureOf(answer)).toBeUndefined()
  vendor.onData(TOO_LONG.subarray(20))
  vendor.onComplete()
  expect(failureOf(await started)).toEqual({ kind: 'context-window' })
  expect(answer.beginning).toEqual(TOO_LONG)
})

it.each([
  ['its body does not arrive', ({ clock }: ReturnType<typeof failed>) => clock.advance(1_000)],
  [
    'its body is large',
    ({ vendor }: ReturnType<typeof failed>) => vendor.onData(Buffer.alloc(2e4)),
  ],
  ['it breaks off', ({ vendor }: ReturnType<typeof failed>) => vendor.onError(new Error('reset'))],
])('the status of an error decides if %s', async (_, happen) => {
  const each = failed(503)
  await happen(each)
  expect(failureOf(await each.started)).toEqual({ kind: 'overloaded' })
})

it('an abort while the body of an error is awaited rejects with its reason', async () => {
  const { started, abort } = failed(400)
  abort('the client left')
  await expect(started).rejects.toBe('the client left')
})
