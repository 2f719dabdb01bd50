/**
 * Requests as the Python SDKs send them through httpx: order and case of the headers, and of the fields of the body.
 * The model follows the messages, so it is at the end of a large body.
 */

export interface PythonRequest {
  readonly head: string
  readonly body: string
}

const STAINLESS = [
  'X-Stainless-Lang: python',
  'X-Stainless-Package-Version: 1.109.1',
  'X-Stainless-OS: Linux',
  'X-Stainless-Arch: x64',
  'X-Stainless-Runtime: CPython',
  'X-Stainless-Runtime-Version: 3.11.2',
]
const COUNTS = ['x-stainless-retry-count: 0', 'x-stainless-read-timeout: 600']

export function openaiPython(content: string, model = 'gpt'): PythonRequest {
  const body = JSON.stringify({ messages: [{ role: 'user', content }], model })
  const auth = ['Authorization: Bearer sk-test', 'X-Stainless-Async: false']
  return request('/v1/chat/completions', 'OpenAI/Python 1.109.1', [...auth, ...COUNTS], body)
}

export function anthropicPython(content: string, model = 'claude'): PythonRequest {
  const body = JSON.stringify({ max_tokens: 100, messages: [{ role: 'user', content }], model })
  const auth = ['X-Api-Key: sk-test', 'X-Stainless-Async: false', 'anthropic-version: 2023-06-01']
  return request('/v1/messages', 'Anthropic/Python 0.69.0', [...auth, ...COUNTS], body)
}

function request(path: string, agent: string, last: string[], body: string): PythonRequest {
  const lines = [
    `POST ${path} HTTP/1.1`,
    'Host: 127.0.0.1',
    'Accept-Encoding: gzip, deflate',
    'Connection: keep-alive',
    'Accept: application/json',
    'Content-Type: application/json',
    `User-Agent: ${agent}`,
    ...STAINLESS,
    ...last,
    `Content-Length: ${Buffer.byteLength(body)}`,
  ]
  return { head: `${lines.join('\r\n')}\r\n\r\n`, body }
}
