// test-group: sockets
import { createDeadline, runWithDeadline } from 'spillway'
import {
  createWorkerBulkhead,
  createWorkerBulkheadRegistry,
  type WorkerBulkhead,
  type WorkerBulkheadOptions,
} from 'spillway/local'
import { afterEach, describe, expect, it } from 'vitest'

const file = new URL('./fixtures/crunch.mjs', import.meta.url)
const open: WorkerBulkhead[] = []

function createCruncher(options: Partial<WorkerBulkheadOptions> = {}): WorkerBulkhead {
  const cruncher = createWorkerBulkhead({ name: 'crunch', limit: 1, file, ...options })
  open.push(cruncher)
  return cruncher
}

afterEach(async () => {
  await Promise.all(open.splice(0).map((each) => each.close()))
})

describe('worker bulkhead', () => {
  it('worker bulkhead keeps the event loop free while a thread is busy', async () => {
    const cruncher = createCruncher()
    let turns = 0
    const counter = setInterval(() => turns++, 1)
    await expect(cruncher.run({ ms: 100 })).resolves.toBe('crunched 100')
    clearInterval(counter)
    expect(turns).toBeGreaterThan(5)
  })

  it('worker bulkhead has slots, a queue and typed refusals like any bulkhead', async () => {
    const cruncher = createCruncher({ queue: { size: 1 } })
    const running = cruncher.run({ ms: 50 })
    const waiting = cruncher.run(4, { task: 'double' })
    expect(cruncher.snapshot()).toEqual({
      name: 'crunch',
      limit: 1,
      active: 1,
      waiting: 1,
      available: 0,
    })
    await expect(cruncher.run({ ms: 1 })).rejects.toMatchObject({ code: 'QUEUE_FULL' })
    await expect(running).resolves.toBe('crunched 50')
    await expect(waiting).resolves.toBe(8)
    expect(cruncher.active).toBe(0)
  })

  it('worker bulkhead passes errors of the work on', async () => {
    const cruncher = createCruncher()
    await expect(cruncher.run('no such page', { task: 'fail' })).rejects.toThrow('no such page')
    expect(cruncher.available).toBe(1)
  })

  it('worker bulkhead stops work after callMs and continues with the next call', async () => {
    const cruncher = createCruncher({ callMs: 1_500, queue: { size: 1 } })
    const endless = cruncher.run({ ms: 60_000 })
    const next = cruncher.run(2, { task: 'double' })
    await expect(endless).rejects.toMatchObject({
      code: 'CALL_TIMEOUT',
      details: { limitMs: 1_500 },
    })
    await expect(next).resolves.toBe(4)
  })

  it("worker bulkhead stops the work of an aborted call with the caller's reason", async () => {
    const cruncher = createCruncher({ queue: { size: 1 } })
    const abort = new AbortController()
    const endless = cruncher.run({ ms: 60_000 }, { signal: abort.signal })
    const reason = new Error('never mind')
    abort.abort(reason)
    await expect(endless).rejects.toBe(reason)
    await expect(cruncher.run(2, { task: 'double' })).resolves.toBe(4)
  })

  it.each([
    ['is missing', './fixtures/missing.mjs'],
    ['throws while it loads', './fixtures/broken.mjs'],
  ])('worker bulkhead fails the call and not the process when the file %s', async (_, path) => {
    const cruncher = createCruncher({ file: new URL(path, import.meta.url) })
    await expect(cruncher.run(1)).rejects.toThrow(/missing|broken on purpose/)
    await expect(cruncher.run(1)).rejects.toThrow(/missing|broken on purpose/)
    expect(cruncher.available).toBe(1)
  })

  it('worker bulkhead stops work at the deadline of the request', async () => {
    const cruncher = createCruncher()
    const call = runWithDeadline(createDeadline(50), () => cruncher.run({ ms: 60_000 }))
    await expect(call).rejects.toMatchObject({ code: 'DEADLINE_EXCEEDED' })
  })

  it('a closed worker bulkhead refuses every call', async () => {
    const cruncher = createCruncher()
    await cruncher.run(1, { task: 'double' })
    await cruncher.close()
    await expect(cruncher.run(1)).rejects.toMatchObject({ code: 'SHUTTING_DOWN' })
  })

  it('createWorkerBulkhead names the invalid option', () => {
    for (const file of ['', './crunch.mjs', new URL('http://localhost/crunch.mjs')]) {
      expect(() => createCruncher({ file })).toThrow('workerBulkhead.file: must be a file URL')
    }
    expect(() => createCruncher({ limit: 0 })).toThrow('workerBulkhead.limit')
    const typo = { callMS: 5 } as Partial<WorkerBulkheadOptions>
    expect(() => createCruncher(typo)).toThrow(
      "workerBulkhead.callMS: unknown option; did you mean 'callMs'?",
    )
    expect(() => createCruncher({ callMs: 0 })).toThrow('workerBulkhead.callMs')
  })
})

describe('worker bulkhead registry', () => {
  it('worker bulkhead registry gives each name its own pool', async () => {
    const pools = createWorkerBulkheadRegistry({ limit: 1, file })
    const thumbnail = pools.get('thumbnails').run({ ms: 60 })
    const report = pools.get('reports').run(3, { task: 'double' })
    expect(pools.snapshot().map(({ name, active }) => [name, active])).toEqual([
      ['thumbnails', 1],
      ['reports', 1],
    ])
    await expect(pools.get('thumbnails').run(1)).rejects.toMatchObject({ code: 'QUEUE_FULL' })
    await expect(report).resolves.toBe(6)
    await thumbnail
    await pools.close()
  })
})
