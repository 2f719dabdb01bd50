/** A pod with a dashboard on its own port, and a reader of its feed. */
import { once } from 'node:events'
import { createServer, type IncomingMessage, request } from 'node:http'
import type { AddressInfo } from 'node:net'
import { onTestFinished, vi } from 'vitest'
import { createSpillway, type Spillway } from '../../../spillway/src/index.js'
import type { Store } from '../../../spillway/src/store/port.js'
import { createDashboard, type DashboardOptions } from '../../src/index.js'
import type { Act, ActAnswer } from '../../src/wire/acts.js'
import type { Messages } from '../../src/wire/messages.js'

export interface Pod {
  readonly spillway: Spillway
  readonly url: string
  readonly port: number
  readonly dashboard: ReturnType<typeof createDashboard>
  read(headers?: Record<string, string>): Promise<Reader>
  act(act: Act | object, headers?: Record<string, string>): Promise<ActReply>
}

export interface ActReply {
  status: number
  body: ActAnswer
}

export async function startPod(
  options: Partial<DashboardOptions> & { store?: Store; pod?: string } = {},
): Promise<Pod> {
  const { store, pod = 'pod', ...own } = options
  const spillway = createSpillway({ pod, ...(store && { store }) })
  const dashboard = createDashboard({ spillway, ...own })
  const server = createServer(dashboard).listen(0, '127.0.0.1')
  await once(server, 'listening')
  onTestFinished(async () => {
    dashboard.close()
    server.closeAllConnections()
    server.close()
    await spillway.close({ graceMs: 0 })
  })
  const { port } = server.address() as AddressInfo
  const url = `http://127.0.0.1:${port}`
  const shown = own.token === undefined ? {} : { authorization: `Bearer ${own.token}` }
  return {
    spillway,
    url,
    port,
    dashboard,
    read: (headers) => readFeed(`${url}/events`, { ...shown, ...headers }),
    async act(act, headers = { origin: url }) {
      const response = await fetch(`${url}/act`, {
        method: 'POST',
        headers: { 'content-type': 'application/json', ...headers },
        body: JSON.stringify(act),
      })
      return { status: response.status, body: (await response.json()) as ActAnswer }
    },
  }
}

type Name = keyof Messages
type Message = {
  [N in Name]: { id: string | undefined; name: N; data: Messages[N]; text: string }
}[Name]

export class Reader {
  readonly messages: Message[] = []
  readonly #response: IncomingMessage
  text = ''

  constructor(response: IncomingMessage) {
    this.#response = response
    let rest = ''
    response.setEncoding('utf8')
    response.on('data', (piece: string) => {
      this.text += piece
      const parts = (rest + piece).split('\n\n')
      rest = parts.pop() ?? ''
      for (const part of parts) {
        const [, id, name, text] = /^(?:id: (.*)\n)?event: (.*)\ndata: (.*)$/.exec(part) ?? []
        if (text !== undefined) {
          this.messages.push({ id, name, data: JSON.parse(text), text } as Message)
        }
      }
    })
    response.on('error', () => {})
  }

  get lastId(): string {
    return this.messages.findLast(({ id }) => id !== undefined)?.id ?? ''
  }

  all<N extends Name>(name: N): Messages[N][] {
    return this.messages.flatMap((each) => (each.name === name ? [each.data as Messages[N]] : []))
  }

  last<N extends Name>(name: N): Messages[N] | undefined {
    return this.all(name).at(-1)
  }

  /** The first message of this name for which the condition holds, past or future. */
  until<N extends Name>(
    name: N,
    holds: (data: Messages[N]) => boolean = () => true,
  ): Promise<Messages[N]> {
    return vi.waitFor(
      () => {
        const found = this.all(name).find(holds)
        if (found === undefined) throw new Error(`no such ${name} among ${this.all(name).length}`)
        return found
      },
      { timeout: 15_000, interval: 20 },
    )
  }

  pause(): void {
    this.#response.pause()
  }

  resume(): void {
    this.#response.resume()
  }

  close(): void {
    this.#response.destroy()
  }
}

export async function readFeed(url: string, headers: Record<string, string> = {}): Promise<Reader> {
  const asked = request(url, { headers }).end()
  const [response] = (await once(asked, 'response')) as [IncomingMessage]
  if (response.statusCode !== 200) {
    response.resume()
    throw new Error(`answered with ${response.statusCode}`)
  }
  onTestFinished(() => {
    response.destroy()
  })
  return new Reader(response)
}
