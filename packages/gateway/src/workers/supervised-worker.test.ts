import type { Worker } from 'node:cluster'
import { EventEmitter } from 'node:events'
import { describe, expect, it } from 'vitest'
import type { SupervisorApi } from './protocol.js'
import { SupervisedWorker } from './supervised-worker.js'

function setUp(pid: number | undefined) {
  const process = Object.assign(new EventEmitter(), { process: { pid }, isConnected: () => true })
  const worker = new SupervisedWorker(1, process as unknown as Worker, {} as SupervisorApi)
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
