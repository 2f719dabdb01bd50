// test-group: sockets

/** Errors of the mock vendor over HTTP, read by the table of each protocol. */
import {
  anthropicFormat,
  azureFormat,
  geminiFormat,
  openaiFormat,
  readFailure,
} from 'spillway/internal'
import { describe, expect, it, onTestFinished } from 'vitest'
import { ERROR_KINDS } from '../src/error-kinds.js'
import { createMockVendor } from '../src/index.js'

const MESSAGES = [{ role: 'user', content: 'twelve chars' }]
const VENDORS = [
  { format: openaiFormat, path: '/v1/chat/completions', body: { model: 'm', messages: MESSAGES } },
  {
    format: azureFormat,
    path: '/openai/deployments/m/chat/completions?api-version=2024-10-21',
    body: { messages: MESSAGES },
  },
  {
    format: anthropicFormat,
    path: '/v1/messages',
    body: { model: 'm', max_tokens: 9, messages: MESSAGES },
  },
  {
    format: geminiFormat,
    path: '/v1beta/models/m:generateContent',
    body: { contents: [{ parts: [{ text: 'twelve chars' }] }] },
  },
]

describe.each(VENDORS)('errors of $format.name', ({ format, path, body }) => {
  // A blocked prompt is no error for Google: it answers with status 200.
  const kinds = ERROR_KINDS.filter((kind) => format !== geminiFormat || kind !== 'content-filter')

  it.each(kinds)('an error of the kind %s is classified as this kind', async (kind) => {
    const vendor = createMockVendor({ knobs: { error: kind } })
    onTestFinished(() => vendor.close())
    const { url } = await vendor.start()
    const headers = { 'content-type': 'application/json', 'anthropic-version': '2023-06-01' }
    const isAnthropic = format === anthropicFormat
    const response = await fetch(url + path, {
      method: 'POST',
      headers: isAnthropic ? headers : { 'content-type': headers['content-type'] },
      body: JSON.stringify(body),
    })
    const answer = {
      status: response.status,
      headers: response.headers,
      body: await response.text(),
    }
    expect(readFailure(format.errors, answer, Date.now()).kind).toBe(kind)
  })
})
