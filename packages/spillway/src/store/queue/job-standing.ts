/** The changing part of one job, for frequent reads. Twin: `redis/lua/read-standing.lua`. */
import type { JobStanding } from '../queue-port.js'
import { DONE, type QueueState, stateNamed } from './queue-state.js'

export function readStanding(state: QueueState, id: string): JobStanding | undefined {
  const job = state.jobs.get(id)
  if (job === undefined) return undefined
  const { attempt, progress } = job
  const text = job.state === DONE ? '' : (state.texts.get(id) ?? '')
  return { state: stateNamed(job.state), attempt, progress, text }
}
