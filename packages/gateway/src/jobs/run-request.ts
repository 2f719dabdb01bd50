/** Sends a queued request to its vendor. Its permits are already granted. */

import { type CallContext, type Clock, type Job, SpillwayError } from 'spillway'
import { judgeStatus } from 'spillway/http'
import {
  anyUsage,
  type KeyAnswer,
  type KeyPermit,
  noteFailure,
  readFailure,
  UsageReader,
} from 'spillway/internal'
import type { TargetConfig } from '../config/config.js'
import { keyAnswerOf, rejectsKey, UNKNOWN } from '../vendor/key-answer.js'
import { neverConnected } from '../vendor/vendor-error.js'
import type { LaneQueue } from './lane-queue.js'
import { readWhole, type StoredAnswer, storeAnswer } from './stored-answer.js'
import { isStoredRequest, restoreRequest, type StoredRequest } from './stored-request.js'

/** The vendor's name of the error. The rest of the answer is dropped, because it may quote the request. */
const ERROR_NAME = /"(?:code|type)"\s*:\s*"([\w.-]{1,60})"/

/** An answer with an error status. */
class BadAnswerError extends Error {
  readonly status: number
  readonly headers: unknown

  constructor(
    vendor: string,
    { status, headers, body }: { status: number; headers: unknown; body: string },
  ) {
    const name = ERROR_NAME.exec(body)?.[1]
    super(`${vendor} answered with status ${status}${name === undefined ? '' : `, ${name}`}`)
    this.name = 'BadAnswerError'
    this.status = status
    this.headers = headers
  }
}

/** A damaged record. The job is given up, and the breaker does not count it. */
class UnreadableRequestError extends Error {
  readonly status = 400

  constructor(id: string) {
    super(`the stored request of job ${id} cannot be read`)
    this.name = 'UnreadableRequestError'
  }
}

export async function runRequest(
  job: Job<StoredRequest>,
  context: CallContext,
  {
    vendor,
    config,
    clock,
  }: Pick<LaneQueue, 'vendor' | 'config'> & { clock: Pick<Clock, 'wallMs'> },
): Promise<StoredAnswer> {
  const { data } = job
  if (!isStoredRequest(data)) throw new UnreadableRequestError(job.id)
  const target = { vendor: config.vendor, key: config.key, model: config.model }
  const request = restoreRequest(data, vendor.ownHeaders(target))
  const free = () => data.cost && context.settle(zeroCost(data.cost))
  job.final = !data.harmless
  const permit = await enterWithKey(vendor, target)
  let keyAnswer: KeyAnswer = UNKNOWN
  if (permit instanceof SpillwayError) {
    // It was not sent, so it waits until the key may be used again.
    job.final = false
    throw permit
  }
  try {
    const response = await vendor.fetch(request, context.signal)
    context.progress()
    const usage = new UsageReader(vendor.protocol.usage ?? anyUsage)
    const bytes = await readWhole(response.body, config.maxAnswerBytes, (chunk, receivedBytes) => {
      context.progress()
      usage.push(chunk)
      job.progress({ receivedBytes })
    })
    const { statusCode: status, headers } = response
    const { errors } = vendor.protocol
    // A vendor that refuses or fails has generated nothing.
    if (status >= 400) free()
    const body = status < 400 ? '' : bytes.toString()
    const failure =
      status < 400
        ? undefined
        : errors && readFailure(errors, { status, headers, body }, clock.wallMs())
    if (permit !== undefined) keyAnswer = keyAnswerOf(status, failure)
    if (judgeStatus(status).retryable || rejectsKey(keyAnswer)) {
      // The vendor has not processed the request.
      if (status === 429 || rejectsKey(keyAnswer)) job.final = false
      const error = new BadAnswerError(vendor.name, { status, headers, body })
      if (failure !== undefined) noteFailure(error, failure)
      throw error
    }
    const cost = status < 400 ? usage.read() : undefined
    if (cost !== undefined) {
      context.settle(vendor.countedFor(data, config.model, cost))
    }
    if (status < 300) {
      // The prompt was estimated when the job was added, perhaps by another gateway.
      const known = { prompt: undefined, answers: data.answers, sentMs: 0 }
      vendor.answered(config.model, target, known, cost)
    }
    return storeAnswer(response, bytes)
  } catch (error) {
    if (neverConnected(error)) {
      free()
      job.final = false
    }
    throw error
  } finally {
    if (permit !== undefined) vendor.keys?.answered(permit, keyAnswer)
  }
}

/** A permit for the key of the queue's lane, or the refusal. Undefined if the vendor has no configured key. */
async function enterWithKey(
  { keys }: LaneQueue['vendor'],
  target: TargetConfig,
): Promise<KeyPermit | SpillwayError | undefined> {
  const key = keys?.choose(target)
  return key === undefined || key instanceof SpillwayError ? key : keys?.enter(key)
}

function zeroCost(cost: Readonly<Record<string, number>>): Record<string, number> {
  return Object.fromEntries(Object.keys(cost).map((unit) => [unit, 0]))
}
