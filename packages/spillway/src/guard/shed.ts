/** Stage 1: refuses early, before anything is done. Critical calls are never shed. */
import type { SpillwayError } from '../core/errors.js'
import { callSafely } from '../core/events.js'
import { PRIORITIES, type Priority } from '../core/priority.js'
import type { Machinery } from './machinery.js'
import { shedByHookError, shedError } from './refusals.js'
import type { RunOptions } from './run-options.js'

export function shedRefusal(
  { name, room, dispatcher, options }: Machinery,
  importance: number,
  nowMs: number,
  { user, tier }: RunOptions,
): SpillwayError | undefined {
  const { shed } = options
  if (shed === undefined || importance === 0) return undefined
  const waiting = room.length === 0 ? 0 : dispatcher.crowd(nowMs)
  const { maxQueue, when } = shed
  if (maxQueue !== undefined && waiting >= maxQueue) return shedError(name, waiting, maxQueue)
  if (when === undefined) return undefined
  const question = { priority: PRIORITIES[importance] as Priority, user, tier, waiting }
  return callSafely(name, 'shed.when', () => when(question) === true, false)
    ? shedByHookError(name, waiting)
    : undefined
}
