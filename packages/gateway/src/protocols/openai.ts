/** OpenAI's API, and every other one with the same format: chat completions, responses, embeddings. */
import { openaiFormat, remembered } from 'spillway/internal'
import { openaiText } from './openai-text.js'
import { bearer, type Complaint, type Protocol, requestFormat, valuesOf } from './protocol.js'

export const openai: Protocol = {
  name: 'openai',
  callerKey: bearer,
  vendorKey: (secret) => ['authorization', `Bearer ${secret}`],
  format: requestFormat(openaiFormat),
  usage: openaiFormat.usage,
  errors: openaiFormat.errors,
  hidesUsage: (path, fields) => openaiFormat.hidesUsage(path, valuesOf(fields)),
  usageFields: (fields) => openaiFormat.usageFields?.(valuesOf(fields)) ?? {},
  isUsageEvent: openaiFormat.isUsageEvent,
  isCutOff,
  requestIdHeader: 'x-request-id',
  errorType: 'application/json',
  errorBody: (complaint) => JSON.stringify(openaiFormat.errorBody(complaint)),
  errorEvent,
  endsAfterErrorEvent: true,
  textAnswer: openaiText,
  repeatable: remembered(openaiFormat.isRepeatable),
}

const SEQUENCE_NUMBER = /"sequence_number"\s*:\s*(\d+)/g

/**
 * Streams of the Responses API have errors as a numbered event of its own type, with the error also in `error`, where
 * SDKs look.
 */
function errorEvent(complaint: Complaint, path: string, end = ''): string {
  const body = openaiFormat.errorBody(complaint)
  if (!path.endsWith('/responses')) return `data: ${JSON.stringify(body)}\n\n`
  const { code, message } = complaint
  const last = [...end.matchAll(SEQUENCE_NUMBER)].at(-1)?.[1]
  const sequence_number = last === undefined ? 0 : Number(last) + 1
  const event = { type: 'error', sequence_number, code, message, param: null, ...body }
  return `event: error\ndata: ${JSON.stringify(event)}\n\n`
}

const LAST_EVENT = /^data: ?\[DONE\]|"error"\s*:\s*[{"]|"type"\s*:\s*"error"/m
const CHOICE = /"choices"\s*:\s*\[\s*\{/
/** Some vendors with this format leave out the last event, but not this. */
const FINISHED = /"finish_reason"\s*:\s*"[^"]/
const RESPONDING = /"type"\s*:\s*"response\./
const RESPONDED = /"type"\s*:\s*"response\.(completed|incomplete|failed|cancelled)"/

function isCutOff(end: string): boolean {
  if (LAST_EVENT.test(end)) return false
  if (CHOICE.test(end)) return !FINISHED.test(end)
  return RESPONDING.test(end) && !RESPONDED.test(end)
}
