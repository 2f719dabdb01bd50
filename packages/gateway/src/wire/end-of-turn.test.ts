// test-group: io

import { once } from 'node:events'
import { createServer, get } from 'node:http'
import type { AddressInfo } from 'node:net'
import { PassThrough } from 'node:stream'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { describe, expect, it } from 'vitest'
import { endAtEndOfTurn, holdUntilEndOfTurn, leaveByEndOfTurn } from './end-of-turn.js'

describe('the end of a turn', () => {
  it('data held in an event loop turn is written at the end of that turn', async () => {
    const streams = [new PassThrough(), new PassThrough()]
    for (const stream of streams) {
      holdUntilEndOfTurn(stream)
      stream.write('a')
    }
    await Promise.resolve()
    expect(streams.map((stream) => stream.read())).toEqual([null, null])
    await nextTurn()
    expect(streams.map((stream) => String(stream.read()))).toEqual(['a', 'a'])
    holdUntilEndOfTurn(streams[0] as PassThrough)
    expect(streams[0]?.writableCorked).toBe(1)
    await nextTurn()
    expect(streams[0]?.writableCorked).toBe(0)
  })

  it('leave() is called once per registration, in order, at the end of its turn', async () => {
    const left: string[] = []
    const one = (name: string, next?: () => void) => ({
      leave() {
        left.push(name)
        next?.()
      },
    })
    leaveByEndOfTurn(one('a', () => leaveByEndOfTurn(one('c'))))
    leaveByEndOfTurn(one('b'))
    await Promise.resolve()
    expect(left).toEqual([])
    await nextTurn()
    expect(left).toEqual(['a', 'b'])
    await nextTurn()
    expect(left).toEqual(['a', 'b', 'c'])
  })

  it('leave() is called at once for the first four registrations of a turn and later for the rest', async () => {
    const left: number[] = []
    for (let i = 1; i <= 6; i++) leaveByEndOfTurn({ leave: () => left.push(i) })
    expect(left).toEqual([1, 2, 3, 4])
    await nextTurn()
    expect(left).toEqual([1, 2, 3, 4, 5, 6])
  })

  it('a stream or response destroyed before the end of the turn causes no error', async () => {
    const stream = new PassThrough()
    holdUntilEndOfTurn(stream)
    stream.write('a')
    stream.destroy()
    const server = createServer((_, response) => {
      response.writeHead(200, ['content-length', '1'])
      endAtEndOfTurn(response, 'a')
      response.destroy()
    })
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
    const request = get({ port: (server.address() as AddressInfo).port, agent: false })
    const [error] = await once(request, 'error')
    expect(error).toMatchObject({ code: 'ECONNRESET' })
    server.close()
  })
})
