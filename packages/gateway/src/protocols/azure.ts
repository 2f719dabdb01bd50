/** Azure OpenAI: bodies, streams and errors as OpenAI's, with another key header and the deployment in the path. */
import { azureFormat } from 'spillway/internal'
import { openai } from './openai.js'
import { bearer, type Protocol, requestFormat } from './protocol.js'

export const azure: Protocol = {
  ...openai,
  name: 'azure',
  callerKey(headers) {
    const key = headers['api-key']
    return typeof key === 'string' ? key : bearer(headers)
  },
  vendorKey: (secret) => ['api-key', secret],
  format: requestFormat(azureFormat),
}
