import type { SpillwayEvent } from 'spillway'
import { systemClock } from 'spillway/internal'
import { expect, it } from 'vitest'
import { createLog } from './log.js'

/** True: changes something for all requests or jobs. False: happens to one of them. A new event has to be added. */
const IS_LOGGED: Record<SpillwayEvent['type'], boolean> = {
  'breaker.opened': true,
  'breaker.half-opened': true,
  'breaker.closed': true,
  'breaker.isolated': true,
  'breaker.self-isolated': true,
  'breaker.refused': false,
  'bulkhead.refused': false,
  'bulkhead.overdue': false,
  'callback.failed': true,
  'fallback.used': false,
  'fallback.failed': false,
  'feature.off': false,
  'feature.on': false,
  'guard.no-timeout': true,
  'guard.would-have-refused': false,
  'hedge.started': false,
  'hedge.won': false,
  'hedge.skipped': false,
  'job.added': false,
  'job.done': false,
  'job.cancelled': false,
  'job.dead': true,
  'job.retried': false,
  'job.released': false,
  'job.lost': false,
  'job-queue.full': true,
  'job-queue.paused': true,
  'job-queue.resumed': true,
  'key.quarantined': true,
  'key.released': true,
  'lanes.full': true,
  'limit.changed': false,
  'limit.learned': true,
  'limiter.refused': false,
  'operator.acted': true,
  'pod.command': true,
  'retry.scheduled': false,
  'retry.stopped': false,
  'shedder.refused': false,
  'store.degraded': true,
  'store.restored': true,
  'store.unreachable': true,
  'stream.ended': false,
  'timeout.fired': false,
}

it('gateway logs job queues that are full or paused, and every other event of all requests, but none of single requests', () => {
  const logged: string[] = []
  // Sees each line; an empty text writes nothing.
  const log = createLog('info', (line) => {
    logged.push(JSON.parse(line).msg)
    return ''
  })
  const types = Object.keys(IS_LOGGED) as SpillwayEvent['type'][]
  for (const type of types) log.event({ type, name: 'openai' } as SpillwayEvent)
  log.close()
  expect(logged).toEqual(types.filter((type) => IS_LOGGED[type]))
})

it('lines of a log have the time of its clock', () => {
  const times: number[] = []
  const seen = (line: string) => {
    times.push(JSON.parse(line).time)
    return ''
  }
  const log = createLog('info', seen, { clock: { ...systemClock, wallMs: () => 1_234 } })
  log.notice?.('info', 'configuration applied', {})
  log.close()
  expect(times).toEqual([1_234])
})
