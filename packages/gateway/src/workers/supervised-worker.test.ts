import type { ChildProcess } from 'node:child_process'
import { EventEmitter } from 'node:events'
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
  it('a process that could not be started has ended, once', () => {
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

  it('a running process has not ended because a message could not be sent', () => {
    const { process, worker, ends } = setUp(42)
    process.emit('error', new Error('write EPIPE'))
    expect(worker.isAlive).toBe(true)
    expect(ends).toEqual([])
    process.emit('exit', null, 'SIGKILL')
    process.emit('error', new Error('write EPIPE'))
    expect(ends).toEqual(['SIGKILL'])
  })
})
