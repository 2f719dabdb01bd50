import { describe, expect, it } from 'vitest'
import { FakeSocket, turns } from '../../test/fake-socket.js'
import { keepAliveLines, PlainConnection, type PlainOwner } from './plain-connection.js'
import type { PlainRequest } from './plain-request.js'
import type { PlainResponse } from './plain-response.js'

const HEADERS_MS = 10_000
const IDLE_MS = 50_000
const EVENTS = ['data', 'end', 'drain', 'close', 'error', 'finish', 'pause', 'resume']
const GET = 'GET /a HTTP/1.1\r\nHost: a\r\n\r\n'
const POST = 'POST /b HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n\r\n'

function open() {
  const socket = new FakeSocket()
  const before = EVENTS.map((event) => socket.listenerCount(event))
  const asked: { request: PlainRequest; response: PlainResponse }[] = []
  const handedOver: string[] = []
  const owner: PlainOwner = {
    mostHeadBytes: 200,
    mostBodyBytes: 100,
    headersMs: HEADERS_MS,
    idleMs: IDLE_MS,
    keepAlive: keepAliveLines(IDLE_MS),
    onRequest: (request, response) => asked.push({ request, response }),
    onOther: () => {
      handedOver.push('')
      expect(EVENTS.map((event) => socket.listenerCount(event))).toEqual(before)
      socket.on('data', (bytes) => {
        handedOver[0] += bytes.toString('latin1')
      })
    },
    onCut: () => handedOver.push('cut'),
  }
  const connection = new PlainConnection(socket.asSocket, owner)
  const say = async (text: string) => {
    socket.push(Buffer.from(text, 'latin1'))
    await turns()
  }
  const answer = async (headers: Record<string, string> = {}) => {
    const { response } = asked.at(-1) ?? {}
    response?.writeHead(200, { 'content-length': '2', ...headers })
    response?.end('ok')
    await turns()
  }
  /** Runs the periodic check as if `afterMs` had passed. */
  const look = (afterMs: number) => connection.look(performance.now() + afterMs)
  return { socket, connection, asked, handedOver, say, answer, look }
}

describe('PlainConnection', () => {
  it.each([
    ['a head that is not plain', [GET.replace('GET', 'PUT')]],
    ['bytes that do not begin a head', ['\x16\x03\x01']],
    ['a head that is too long', [GET.replace('\r\n\r\n', `\r\nX: ${'x'.repeat(300)}\r\n\r\n`)]],
    ['a head without end', [GET.slice(0, 20), 'x'.repeat(300)]],
    ['a body that is too large', [POST.replace('4', '101')]],
    ['two requests at once', [GET + GET]],
    ['a request and half of another', [GET + GET.slice(0, 5)]],
  ])('a connection is handed over to Node with all bytes it has read: %s', async (_, pieces) => {
    const { handedOver, asked, say } = open()
    for (const piece of pieces) await say(piece)
    expect(handedOver).toEqual([pieces.join('')])
    expect(asked).toEqual([])
  })

  it('data that arrives during a request is kept and handed over to Node after its answer', async () => {
    const { handedOver, asked, say, answer, socket, connection } = open()
    await say(`${POST}12`)
    await say(`34${GET}`)
    for (let i = 0; i < 40; i++) await say('x'.repeat(1_000))
    expect([handedOver, asked.length, connection.hasMore]).toEqual([[], 1, true])
    // The socket is paused, so the buffered data stays bounded.
    expect(socket.isPaused()).toBe(true)
    await answer()
    await turns()
    expect(handedOver).toEqual([`${GET}${'x'.repeat(40_000)}`])
    expect(connection.hasMore).toBe(false)
    expect(asked[0]?.request.body?.toString()).toBe('1234')
  })

  it('the rest of a request that was answered early is discarded, and the next request is read', async () => {
    const { asked, say, answer } = open()
    await say(`${POST}1`)
    await answer()
    await say('23')
    expect(asked[0]?.request.complete).toBe(false)
    await say('4')
    await say(GET)
    expect(asked.map(({ request }) => request.url)).toEqual(['/b', '/a'])
  })

  it('a connection is closed after an answer with Connection: close and reads nothing more', async () => {
    const { socket, asked, handedOver, say, answer } = open()
    let close = () => {}
    socket._final = (done) => {
      close = done
    }
    await say(`${POST}1`)
    await answer({ connection: 'close' })
    expect(socket.writableEnded).toBe(true)
    await say(`234${GET}`)
    await say(GET)
    await say('PUT / HTTP/1.1\r\n\r\n')
    socket.push(null)
    await turns()
    expect([asked.length, handedOver]).toEqual([1, []])
    close()
    await turns()
    expect(socket.destroyed).toBe(true)
  })

  it('a connection whose client stops within a request is reported as cut, and otherwise ended', async () => {
    for (const [said, told] of [
      [GET.slice(0, 9), ['cut']],
      [`${POST}1`, ['cut']],
      [GET, []],
      ['', []],
    ] as const) {
      const { socket, handedOver, say } = open()
      if (said !== '') await say(said)
      socket.push(null)
      await turns()
      expect([said, handedOver, socket.writableEnded]).toEqual([said, told, told.length === 0])
    }
  })
})

describe('periodic check of a connection', () => {
  it('a connection without a request is closed after headersMs', async () => {
    const { socket, look } = open()
    look(HEADERS_MS - 5_000)
    expect(socket.destroyed).toBe(false)
    look(HEADERS_MS + 1)
    expect(socket.destroyed).toBe(true)
  })

  it('an idle connection is closed after idleMs, but not while a request runs', async () => {
    const { socket, look, say, answer } = open()
    await say(GET)
    look(1_000_000)
    await answer()
    look(IDLE_MS - 5_000)
    expect(socket.destroyed).toBe(false)
    look(IDLE_MS + 1)
    expect(socket.destroyed).toBe(true)
  })

  it('a connection is closed after idleMs if an answered request never sends the rest of its body', async () => {
    const { socket, look, say, answer } = open()
    await say(`${POST}1`)
    look(1_000_000)
    await answer()
    await say('2')
    look(IDLE_MS - 5_000)
    expect(socket.destroyed).toBe(false)
    look(IDLE_MS + 1)
    expect(socket.destroyed).toBe(true)
  })

  it('a connection with half a head is handed over to Node, which limits the time for the rest', async () => {
    const { handedOver, look, say, answer } = open()
    await say(GET)
    await answer()
    await say(GET.slice(0, 9))
    look(0)
    await say(GET.slice(9))
    expect(handedOver).toEqual([GET])
  })
})

describe('body of a plain request', () => {
  it('reading a body waits for the rest of it and rejects when the connection closes', async () => {
    const { socket, asked, say } = open()
    await say(`${POST}12`)
    const reading = asked[0]?.request.readBody()
    await say('34')
    expect((await reading)?.toString()).toBe('1234')
    await say('')
    const other = open()
    await other.say(`${POST}12`)
    const failing = other.asked[0]?.request.readBody()
    other.socket.destroy()
    await expect(failing).rejects.toThrow('gone')
    // A later read rejects as well.
    await expect(other.asked[0]?.request.readBody()).rejects.toThrow('gone')
    socket.destroy()
  })

  it('reading a discarded body rejects, even if part of it had arrived', async () => {
    const { socket, asked, say } = open()
    await say(`${POST}12`)
    const [{ request } = {}] = asked
    const reading = request?.readBody()
    request?.resume()
    await say('34')
    expect(request?.complete).toBe(true)
    socket.destroy()
    await expect(reading).rejects.toThrow('gone')
  })
})
