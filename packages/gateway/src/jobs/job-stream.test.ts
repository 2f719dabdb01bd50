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
  const counts = { looked: 0, read: 0, ended: 0, shutDown: 0 }
  const response = Object.assign(new EventEmitter(), {
    write: (text: string) => written.push(/event: (\w+)/.exec(text)?.[1] ?? ''),
    end: () => {},
  })
  const stream = new JobStream(
    {
      queue: 'night',
      response: response as unknown as ServerResponse,
      standing: async () => {
        counts.looked++
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
  const look = async (change?: Partial<KeptJob> | 'gone') => {
    job = change === 'gone' ? undefined : ({ ...WAITING, ...change } as KeptJob)
    const before = counts.looked
    stream.nudge()
    await expect.poll(() => counts.looked).toBe(before + 1)
    await new Promise((resolve) => setImmediate(resolve))
  }
  return { look, written, counts, clock }
}

describe('job event stream', () => {
  it('the stream reads the whole job only after a change', async () => {
    const { look, written, counts } = follow()
    for (let times = 0; times < 5; times++) await look({ ageMs: times })
    expect([written, counts.read]).toEqual([['queued'], 0])
    await look({ state: 'active', attempt: 1 })
    await look({ state: 'active', attempt: 1 })
    await look({ state: 'active', attempt: 1, progress: { receivedBytes: 10 } })
    expect([written, counts.read]).toEqual([['queued', 'running', 'running'], 2])
    await look({ state: 'done', attempt: 1 })
    expect([written.at(-1), counts.read, counts.ended]).toEqual(['done', 3, 1])
  })

  it('the stream ends when the job is no longer known', async () => {
    const { look, written, counts } = follow()
    await look('gone')
    expect([written, counts.read, counts.ended]).toEqual([['queued', 'gone'], 0, 1])
  })

  it('a stream that a draining gateway ends reports the shutdown, unless its job has ended', async () => {
    const running = follow({ isDraining: true })
    await running.look()
    expect([running.counts.shutDown, running.counts.ended]).toEqual([1, 1])
    const done = follow({ isDraining: true })
    await done.look({ state: 'done', attempt: 1 })
    expect([done.counts.shutDown, done.counts.ended]).toEqual([0, 1])
  })

  it('the stream looks at its job by itself, ever more rarely, and sends a comment every 15 s', async () => {
    const { clock, counts, written } = follow()
    await clock.advance(250)
    await clock.advance(500)
    expect(counts.looked).toBe(2)
    await clock.advance(20_000)
    expect(counts.looked).toBeLessThan(15)
    expect(written).toEqual(['queued', ''])
  })
})
