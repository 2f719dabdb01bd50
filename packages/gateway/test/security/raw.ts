/** Sends bytes on a socket and returns everything received until it is closed. */
import { connect, type Socket } from 'node:net'
import { connect as connectTls, createSecureContext } from 'node:tls'

export interface RawAnswer {
  /** The status of each answer, in order. */
  readonly statuses: number[]
  readonly text: string
  /** True if the other end closed the connection, false after a timeout. */
  readonly closed: boolean
}

const PATIENCE_MS = 60_000

function bytes(text: string): Buffer {
  return Buffer.from(text, 'latin1')
}

/**
 * Sends `text` and reads until the other end closes or `enough` is true. `endAfter`: ends the
 * sending side once this number of answers has begun.
 */
export function exchangeRaw(
  url: string,
  what: string | Buffer | readonly Buffer[],
  {
    endAfter,
    enough,
    from,
    alpn,
  }: {
    endAfter?: number
    enough?: (text: string) => boolean
    from?: string
    alpn?: string
  } = {},
): Promise<RawAnswer> {
  return new Promise((resolve) => {
    const socket = connectTo(url, from, alpn === undefined ? undefined : [alpn])
    let text = ''
    let closed = false
    const done = () => {
      clearTimeout(patience)
      socket.destroy()
      resolve({ statuses: statusesIn(text), text, closed })
    }
    const patience = setTimeout(done, PATIENCE_MS)
    socket.on('data', (chunk) => {
      text += chunk.toString('latin1')
      if (enough?.(text)) done()
      else if (endAfter !== undefined && statusesIn(text).length >= endAfter) socket.end()
    })
    socket.on('error', () => {})
    socket.on('close', () => {
      closed = true
      done()
    })
    socket.setNoDelay(true)
    void (async () => {
      for (const piece of typeof what === 'string' ? [bytes(what)] : [what].flat()) {
        await new Promise((sent) => socket.write(piece, sent))
        // Waits, so that the next part arrives in a separate packet.
        if (Array.isArray(what)) await new Promise(setImmediate)
      }
      if (endAfter === 0) socket.end()
    })()
  })
}

/** Without it every connection creates its own, which costs as much as its handshake. */
const secureContext = createSecureContext()

/** `url`: of http, of https with HTTP/1.1 or another protocol by ALPN, or `unix:` and the path of a socket. */
export function connectTo(url: string, from?: string, ALPNProtocols = ['http/1.1']): Socket {
  const { protocol, hostname: host, port, pathname } = new URL(url)
  if (protocol === 'unix:') return connect(pathname)
  if (protocol === 'https:') {
    const options = { rejectUnauthorized: false, ALPNProtocols, secureContext }
    return connectTls({ host, port: Number(port), ...options })
  }
  return connect({ host, port: Number(port), ...(from !== undefined && { localAddress: from }) })
}

export function statusesIn(text: string): number[] {
  return [...text.matchAll(/HTTP\/1\.1 (\d{3}) /g)].map(([, status]) => Number(status))
}
