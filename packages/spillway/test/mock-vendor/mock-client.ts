/** A running mock vendor, and the shortest ways to ask it. */
import { createMockVendor, type MockVendorOptions } from 'spillway/testing'
import { onTestFinished } from 'vitest'

/** Three tokens long. */
const MESSAGES = [{ role: 'user', content: 'twelve chars' }]

export interface Ask {
  headers?: Record<string, string>
  signal?: AbortSignal
}

/** Closed when the test is over. */
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
  /** To OpenAI. */
  const chat = (body: object = {}, ask?: Ask) =>
    post('/v1/chat/completions', { model: 'gpt', messages: MESSAGES, ...body }, ask)
  /** To Anthropic. */
  const messages = (body: object = {}, { headers, ...rest }: Ask = {}) =>
    post(
      '/v1/messages',
      { model: 'claude', max_tokens: 100, messages: MESSAGES, ...body },
      { headers: { 'anthropic-version': '2023-06-01', ...headers }, ...rest },
    )
  return { vendor, url, port, post, chat, messages }
}

/** What stands behind `data:` in each event, parsed. */
export function dataOf(stream: string) {
  const lines = stream.split('\n').filter((line) => line.startsWith('data: {'))
  return lines.map((line) => JSON.parse(line.slice('data: '.length)))
}

/** The tokens a stream of OpenAI's brought, as one text. */
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

/** Resolves when it is so. */
export async function until(isSo: () => boolean): Promise<void> {
  while (!isSo()) await new Promise((resolve) => setTimeout(resolve, 2))
}
