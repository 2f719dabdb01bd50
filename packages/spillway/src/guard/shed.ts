/** Stage 1: refuses early, before anything is done. Critical calls are never shed. */
import type { SpillwayError } from '../core/errors.js'
import { callSafely } from '../core/events.js'
import { PRIORITIES, type Priority } from '../core/options/priority.js'
import { shedError } from '../local/load-shedder/load-shedder.js'
import type { Machinery } from './machinery.js'
import { shedByHookError, shedByQueueError } from './refusals.js'
import type { RunOptions } from './run-options.js'

export function shedRefusal(
  { name, room, dispatcher, slots, shedder, options }: Machinery,
  call: RunOptions,
  priority: number,
  arrivedMs: number,
  deadlineMs: number,
): SpillwayError | undefined {
  if (shedder === undefined) return undefined
  shedder.arrive()
  const waiting = room.length === 0 ? 0 : dispatcher.crowd(arrivedMs)
  const { active } = slots
  const reason = shedder.decide(priority, call, deadlineMs, arrivedMs, waiting, active)
  if (reason === 'queue') return shedByQueueError(name, waiting, shedder.options.maxQueue as number)
  if (reason !== undefined) return shedError(name, reason, shedder.snapshot(waiting, active))
  const when = options.shed?.when
  if (when === undefined || priority === 0) return undefined
  const { user, tier } = call
  const question = { priority: PRIORITIES[priority] as Priority, user, tier, waiting }
  return callSafely(name, 'shed.when', () => when(question) === true, false)
    ? shedByHookError(name, waiting)
    : undefined
}
