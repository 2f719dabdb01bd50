// test-group: io

/** Connections that a worker process has no file descriptor for. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { connect } from 'node:net'
import { expect, it, onTestFinished } from 'vitest'
import { HandOver } from '../src/workers/hand-over.js'
import { listen } from '../src/workers/listen.js'
import type { SupervisorApi } from '../src/workers/protocol.js'
import { SupervisedWorker } from '../src/workers/supervised-worker.js'

/** Opens files until it may open no more, and then takes every connection that it receives. */
const WORKER = `
  const { openSync } = require('node:fs')
  process.on('message', ({ id }) => process.send({ spillway: 'result', id, value: true }))
  try { for (;;) openSync('/dev/null') } catch { process.send({ isFull: true }) }
`

it('a connection that no worker has a file descriptor for is closed', async () => {
  const command = ['-c', 'ulimit -n 64; exec "$0" -e "$1"', process.execPath, WORKER]
  const child = spawn('sh', command, { stdio: ['ignore', 'inherit', 'inherit', 'ipc'] })
  onTestFinished(() => void child.kill('SIGKILL'))
  const worker = new SupervisedWorker(child, {} as SupervisorApi)
  await once(child, 'message')
  const handOver = new HandOver({
    port: 'data',
    workers: () => [worker],
    isLast: () => false,
    onRefused: () => {},
  })
  const { port, close } = await listen({ host: '127.0.0.1', port: 0 }, (socket) => {
    void handOver.give(socket)
  })
  onTestFinished(close)
  const sockets = [1, 2, 3].map(() => connect(port, '127.0.0.1').on('error', () => {}))
  await Promise.all(sockets.map((socket) => once(socket.resume(), 'close')))
  expect(handOver.unconfirmed(worker)).toBe(0)
})
