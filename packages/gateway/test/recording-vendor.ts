/** A vendor on a plain socket that notes the head of every request exactly as it arrives. */
import { once } from 'node:events'
import { type AddressInfo, createServer, type Socket } from 'node:net'
import { onTestFinished } from 'vitest'

export interface Recorded {
  readonly method: string
  readonly url: string
  readonly head: string
  readonly body: string
}

export interface RecordingVendor {
  readonly url: string
  readonly seen: Recorded[]
}

const JSON_ANSWER =
  'HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 2\r\n\r\n{}'

/** `answer`: the raw bytes of each response. */
export async function startRecordingVendor(answer = JSON_ANSWER): Promise<RecordingVendor> {
  const seen: Recorded[] = []
  const sockets = new Set<Socket>()
  const server = createServer((socket) => {
    sockets.add(socket)
    let text = ''
    socket.on('error', () => {})
    socket.on('data', (bytes) => {
      text += bytes.toString('latin1')
      for (;;) {
        const end = text.indexOf('\r\n\r\n')
        if (end === -1) return
        const head = text.slice(0, end)
        const length = Number(/^content-length: *(\d+)/im.exec(head)?.[1] ?? 0)
        if (text.length < end + 4 + length) return
        const body = text.slice(end + 4, end + 4 + length)
        text = text.slice(end + 4 + length)
        const [method = '', url = ''] = head.split(' ', 2)
        seen.push({ method, url, head, body })
        socket.write(Buffer.from(answer, 'latin1'))
      }
    })
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  onTestFinished(() => {
    for (const socket of sockets) socket.destroy()
    server.close()
  })
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, seen }
}
