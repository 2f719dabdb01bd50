/** A running mock vendor with shortcuts for requests. */
import { createMockVendor, type MockVendorOptions } from '@spillway/mock-vendor'
import { onTestFinished } from './concurrent-tests.js'

/** Three tokens. */
const MESSAGES = [{ role: 'user', content: 'twelve chars' }]

export interface Ask {
  headers?: Record<string, string>
  signal?: AbortSignal
}

/** Starts a vendor that is closed after the test. */
export async function startVendor(options: MockVendorOptions = {}) {
  const vendor = createMockVendor(options)
  onTestFinished(() => vendor.close())
  const { url, port } = await vendor.start()
  const post = (path: string, body: object, { headers, signal }: Ask = {}) =>
    fetch(`${url}${path}`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...headers },
      body: JSON.stringify(body),
      signal: signal ?? null,
    })
  /** Sends a request to the OpenAI endpoint. */
  const chat = (body: object = {}, ask?: Ask) =>
    post('/v1/chat/completions', { model: 'gpt', messages: MESSAGES, ...body }, ask)
  /** Sends a request to the Anthropic endpoint. */
  const messages = (body: object = {}, { headers, ...rest }: Ask = {}) =>
    post(
      '/v1/messages',
      { model: 'claude', max_tokens: 100, messages: MESSAGES, ...body },
      { headers: { 'anthropic-version': '2023-06-01', ...headers }, ...rest },
    )
  return { vendor, url, port, post, chat, messages }
}

/** The parsed `data:` of each event. */
export function dataOf(stream: string) {
  const lines = stream.split('\n').filter((line) => line.startsWith('data: {'))
  return lines.map((line) => JSON.parse(line.slice('data: '.length)))
}

/** The tokens of an OpenAI stream as one text. */
export function textOf(stream: string): string {
  return dataOf(stream)
    .map(({ choices }) => choices[0]?.delta.content ?? '')
    .join('')
}

/** Reads until the stream ends or breaks. */
export async function readAll(response: Response): Promise<{ text: string; broke: boolean }> {
  const decoder = new TextDecoder()
  let text = ''
  try {
    for await (const part of response.body ?? []) text += decoder.decode(part, { stream: true })
    return { text, broke: false }
  } catch {
    return { text, broke: true }
  }
}

/** Resolves when the condition holds. */
export async function until(isSo: () => boolean): Promise<void> {
  while (!isSo()) await new Promise((resolve) => setTimeout(resolve, 2))
}
