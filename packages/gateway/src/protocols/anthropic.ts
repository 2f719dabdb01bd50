/** Anthropic's messages API. */
import { anthropicFormat, remembered } from 'spillway/internal'
import { anthropicText } from './anthropic-text.js'
import { bearer, type Protocol, requestFormat } from './protocol.js'

export const anthropic: Protocol = {
  name: 'anthropic',
  callerKey(headers) {
    const key = headers['x-api-key']
    return typeof key === 'string' ? key : bearer(headers)
  },
  vendorKey: (secret) => ['x-api-key', secret],
  format: requestFormat(anthropicFormat),
  usage: anthropicFormat.usage,
  errors: anthropicFormat.errors,
  // Anthropic's streams always report their usage.
  hidesUsage: () => false,
  isUsageEvent: () => false,
  isCutOff: (end) => UNFINISHED.test(end) && !LAST_EVENT.test(end),
  requestIdHeader: 'request-id',
  errorType: 'application/json',
  errorBody: (complaint) => JSON.stringify(anthropicFormat.errorBody(complaint)),
  errorEvent: (complaint) =>
    `event: error\ndata: ${JSON.stringify(anthropicFormat.errorBody(complaint))}\n\n`,
  endsAfterErrorEvent: true,
  textAnswer: anthropicText,
  repeatable: remembered(anthropicFormat.isRepeatable),
}

const UNFINISHED = /"type"\s*:\s*"(message_start|content_block_\w+|message_delta)"/
const LAST_EVENT = /"type"\s*:\s*"(message_stop|error)"/
