import type { ChildProcess } from 'node:child_process'
import { EventEmitter } from 'node:events'
import type { Socket } from 'node:net'
import { describe, expect, it } from 'vitest'
import type { SupervisorApi } from './protocol.js'
import { SupervisedWorker } from './supervised-worker.js'

function setUp(pid: number | undefined) {
  const process = Object.assign(new EventEmitter(), { pid, connected: true })
  const worker = new SupervisedWorker(process as unknown as ChildProcess, {} as SupervisorApi)
  const ends: string[] = []
  worker.onEnd((how) => ends.push(how))
  return { process, worker, ends }
}

describe('worker process', () => {
  it('a process that could not be started is reported as ended once', () => {
    const { process, worker, ends } = setUp(undefined)
    process.emit('error', new Error('spawn EAGAIN'))
    process.emit('exit', -11, null)
    expect(ends).toEqual(['spawn EAGAIN'])
    expect(worker.isAlive).toBe(false)
  })

  it('an answer that arrives after the end of its process counts, until the connection to it is closed', async () => {
    const { process, worker } = setUp(42)
    const sent: { id: number }[] = []
    Object.assign(process, { send: (message: { id: number }) => sent.push(message) })
    const ask = () => worker.channel.call('metrics', undefined)
    const [answered, lost] = [ask(), ask()]
    process.emit('exit', null, 'SIGKILL')
    process.emit('message', { spillway: 'result', id: sent[0]?.id, value: [] })
    expect(await answered).toEqual([])
    process.emit('disconnect')
    await expect(lost).rejects.toThrow('the process has ended')
  })

  it('a call fails when its process has ended, also if a connection to it was on its way', async () => {
    const { process, worker } = setUp(42)
    Object.assign(process, { send: () => {} })
    const lost = worker.channel.call('metrics', undefined)
    process.emit('exit', null, 'SIGKILL')
    // Node emits no 'disconnect' then.
    Object.assign(process, { connected: false })
    process.emit('close', null, 'SIGKILL')
    await expect(lost).rejects.toThrow('the process has ended')
  })

  it('a connection that a process has no file descriptor for fails its call, and no other one', async () => {
    const { process, worker } = setUp(42)
    const sent: { id: number }[] = []
    Object.assign(process, { send: (message: { id: number }) => sent.push(message) })
    const offer = () => {
      const handle = {} as Socket
      const options = { handle, timeoutMs: Number.POSITIVE_INFINITY }
      return worker.channel.call('serve', { port: 'data', isLast: false }, options)
    }
    const [received, dropped, alsoReceived] = [offer(), offer(), offer()]
    process.emit('internalMessage', { cmd: 'NODE_HANDLE_ACK' })
    process.emit('internalMessage', { cmd: 'NODE_HANDLE_NACK' })
    process.emit('internalMessage', { cmd: 'NODE_HANDLE_ACK' })
    await expect(dropped).rejects.toThrow('no free file descriptor')
    for (const { id } of sent) process.emit('message', { spillway: 'result', id, value: true })
    expect(await Promise.all([received, alsoReceived])).toEqual([true, true])
  })

  it('a message that could not be sent does not count as the end of its process', () => {
    const { process, worker, ends } = setUp(42)
    process.emit('error', new Error('write EPIPE'))
    expect(worker.isAlive).toBe(true)
    expect(ends).toEqual([])
    process.emit('exit', null, 'SIGKILL')
    process.emit('error', new Error('write EPIPE'))
    expect(ends).toEqual(['SIGKILL'])
  })
})
