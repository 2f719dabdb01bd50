// test-group: io

/** Connections that a worker process has no file descriptor for. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { expect, it, onTestFinished, vi } from 'vitest'
import { HandOver } from '../src/workers/hand-over.js'
import { listen } from '../src/workers/listen.js'
import type { SupervisorApi } from '../src/workers/protocol.js'
import { SupervisedWorker } from '../src/workers/supervised-worker.js'

/** Opens files until it may open no more. Takes and answers each connection that it receives. */
const WORKER = `
  const { closeSync, openSync } = require('node:fs')
  const files = []
  process.on('message', ({ id, closes }, socket) => {
    if (closes) for (const file of files.splice(0, 10)) closeSync(file)
    socket?.end('taken')
    process.send({ spillway: 'result', id, value: true })
  })
  try { for (;;) files.push(openSync('/dev/null')) } catch { process.send({ isFull: true }) }
`

it('connections that a worker has no file descriptor for stay open, and it can take them later', async () => {
  const command = ['-c', 'ulimit -n 64; exec "$0" -e "$1"', process.execPath, WORKER]
  const child = spawn('sh', command, { stdio: ['ignore', 'inherit', 'inherit', 'ipc'] })
  onTestFinished(() => void child.kill('SIGKILL'))
  const worker = new SupervisedWorker(child, {} as SupervisorApi)
  await once(child, 'message')
  const refused: Socket[] = []
  const handOver = new HandOver({
    port: 'data',
    maxOffered: 1,
    workers: () => [worker],
    isLast: () => false,
    onRefused: (socket) => void refused.push(socket),
  })
  const { port, close } = await listen({ host: '127.0.0.1', port: 0 }, (socket) => {
    handOver.give(socket)
  })
  onTestFinished(close)
  const texts = [1, 2, 3].map(async () => {
    let text = ''
    for await (const chunk of connect(port, '127.0.0.1')) text += chunk
    return text
  })
  await vi.waitFor(() => expect(refused).toHaveLength(3), { timeout: 20_000 })
  // Before it has closed files, it could not receive a connection that arrives with this message.
  const closed = once(child, 'message')
  child.send({ closes: true })
  await closed
  for (const socket of refused.slice()) handOver.give(socket)
  expect(await Promise.all(texts)).toEqual(['taken', 'taken', 'taken'])
  expect(refused).toHaveLength(3)
})
