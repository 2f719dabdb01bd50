import { EventEmitter } from 'node:events'
import type { ServerResponse } from 'node:http'
import { createVirtualClock } from 'spillway/testing'
import { describe, expect, it } from 'vitest'
import type { KeptJob } from './job-status.js'
import { JobStream } from './job-stream.js'

const WAITING = {
  id: '1',
  state: 'waiting',
  attempt: 0,
  attempts: 3,
  priority: 'normal',
  ageMs: 1,
  progress: undefined,
  error: undefined,
} as unknown as KeptJob

function follow({ isDraining = false } = {}) {
  const clock = createVirtualClock()
  let job: KeptJob | undefined = WAITING
  const written: string[] = []
  const counts = { polled: 0, read: 0, ended: 0, shutDown: 0 }
  const response = Object.assign(new EventEmitter(), {
    write: (text: string) => written.push(/event: (\w+)/.exec(text)?.[1] ?? ''),
    end: () => {},
  })
  const stream = new JobStream(
    {
      queue: 'night',
      response: response as unknown as ServerResponse,
      jobStatus: async () => {
        counts.polled++
        return job
      },
      read: async () => {
        counts.read++
        return job
      },
      isDraining: () => isDraining,
      onShutdown: () => {
        counts.shutDown++
      },
      clock,
      onEnd: () => {
        counts.ended++
      },
    },
    WAITING,
  )
  const poll = async (change?: Partial<KeptJob> | 'gone') => {
    job = change === 'gone' ? undefined : ({ ...WAITING, ...change } as KeptJob)
    const before = counts.polled
    stream.refresh()
    await expect.poll(() => counts.polled).toBe(before + 1)
    await new Promise((resolve) => setImmediate(resolve))
  }
  return { poll, written, counts, clock }
}

describe('job event stream', () => {
  it('a job stream reads the whole job only after a change', async () => {
    const { poll, written, counts } = follow()
    for (let times = 0; times < 5; times++) await poll({ ageMs: times })
    expect([written, counts.read]).toEqual([['queued'], 0])
    await poll({ state: 'active', attempt: 1 })
    await poll({ state: 'active', attempt: 1 })
    await poll({ state: 'active', attempt: 1, progress: { receivedBytes: 10 } })
    expect([written, counts.read]).toEqual([['queued', 'running', 'running'], 2])
    await poll({ state: 'done', attempt: 1 })
    expect([written.at(-1), counts.read, counts.ended]).toEqual(['done', 3, 1])
  })

  it('a job stream ends when its job is no longer in the store', async () => {
    const { poll, written, counts } = follow()
    await poll('gone')
    expect([written, counts.read, counts.ended]).toEqual([['queued', 'gone'], 0, 1])
  })

  it('a job stream that a draining gateway ends reports the shutdown, unless its job has ended', async () => {
    const running = follow({ isDraining: true })
    await running.poll()
    expect([running.counts.shutDown, running.counts.ended]).toEqual([1, 1])
    const done = follow({ isDraining: true })
    await done.poll({ state: 'done', attempt: 1 })
    expect([done.counts.shutDown, done.counts.ended]).toEqual([0, 1])
  })

  it('a job stream polls its job at growing intervals and sends a comment every 15 s', async () => {
    const { clock, counts, written } = follow()
    await clock.advance(250)
    await clock.advance(500)
    expect(counts.polled).toBe(2)
    await clock.advance(20_000)
    expect(counts.polled).toBeLessThan(15)
    expect(written).toEqual(['queued', ''])
  })
})
