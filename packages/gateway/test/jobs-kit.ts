/** Shortcuts for submitting a job and reading its state. */
import type { RunningGateway } from './gateway-kit.js'

export interface JobDocument {
  id: string
  queue: string
  status: 'queued' | 'running' | 'done' | 'failed' | 'cancelled'
  priority: string
  attempt: number
  attempts: number
  progress?: { receivedBytes: number }
  error?: string
  answer?: { status: number; type: string }
  links: { self: string; result: string }
}

type Headers = Record<string, string>

export const ASYNC: Headers = { prefer: 'respond-async' }

/** Authorises with a key as OpenAI clients do. */
export const as = (key: string): Headers => ({ authorization: `Bearer ${key}` })

export async function submit(
  gateway: Pick<RunningGateway, 'chat'>,
  headers: Headers = {},
  body: object = {},
) {
  const response = await gateway.chat(body, { headers: { ...ASYNC, ...headers } })
  const document = (await response.json()) as JobDocument
  return { response, document, address: response.headers.get('location') ?? '' }
}

export async function readJob(url: string, address: string, headers: Headers = {}) {
  const response = await fetch(`${url}${address}`, { headers })
  return { status: response.status, document: (await response.json()) as JobDocument }
}

/** The document of the job once it has this status. */
export async function untilStatus(
  url: string,
  address: string,
  wanted: JobDocument['status'],
  headers: Headers = {},
): Promise<JobDocument> {
  for (;;) {
    const { status, document } = await readJob(url, address, headers)
    if (document.status === wanted) return document
    // These will not change any more.
    if (status === 500 || ['done', 'failed', 'cancelled'].includes(document.status)) {
      throw new Error(`it is ${document.status}: ${JSON.stringify(document)}`)
    }
    await new Promise((wake) => setTimeout(wake, 20))
  }
}

/** Names and data of all events until the stream ends. */
export async function readEvents(response: Response) {
  const text = await response.text()
  return [...text.matchAll(/event: (\w+)\ndata: (.*)\n\n/g)].map(([, event, data = '']) => ({
    event,
    data: JSON.parse(data) as JobDocument,
  }))
}
