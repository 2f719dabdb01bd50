// test-group: sockets

/** New connections of a gateway whose other connections are always busy. */
import { connect } from 'node:net'
import { expect, it, onTestFinished } from 'vitest'
import { startGateway } from './gateway-kit.js'

const REQUEST = 'GET /unknown HTTP/1.1\r\nHost: a\r\n\r\n'
const BUSY = 100
const NEW = 40
/** Node accepts one connection in each turn of its event loop. Without a limit, a turn answers all busy connections. */
const MOST_ANSWERS_PER_NEW = 25

it('new connections are answered while a hundred others send a request after each answer', async () => {
  const { url } = await startGateway()
  const port = Number(new URL(url).port)
  let answers = 0
  /** Sends requests one after the other until `isEnough` returns true. */
  const send = (isEnough: () => boolean) =>
    new Promise<void>((resolve) => {
      const socket = connect(port, '127.0.0.1', () => socket.write(REQUEST))
      onTestFinished(() => void socket.destroy())
      socket.on('data', () => {
        answers++
        if (isEnough()) resolve()
        else socket.write(REQUEST)
      })
    })
  let isOver = false
  const busy = Array.from({ length: BUSY }, () => send(() => isOver))
  // All of them were accepted, and each has an answer.
  await Promise.all(Array.from({ length: BUSY }, () => send(() => true)))
  const before = answers
  await Promise.all(Array.from({ length: NEW }, () => send(() => true)))
  const meanwhile = answers - before
  isOver = true
  await Promise.all(busy)
  expect(meanwhile / NEW).toBeLessThan(MOST_ANSWERS_PER_NEW)
})
