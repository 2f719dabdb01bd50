/** Job queues and their dead letters. */
import type { Priority } from 'spillway'
import type { ByPriority } from './common-types.js'

export interface QueuesTick {
  at: number
  jobQueues: QueueTick[]
}

export interface QueueTick {
  name: string
  guard: string
  /** Lane of that guard, whose limits and breaker its jobs use. */
  lane: string
  waiting: number
  delayed: number
  active: number
  done: number
  dead: number
  paused: boolean
  oldestMs: number
  expiredLeases: number
  /** Of waiting jobs. */
  byPriority: ByPriority
  byTenant: {
    /** The tenants with the most jobs, at most eight; an empty name: jobs without a tenant. */
    top: { tenant: string; waiting: number; byPriority: ByPriority }[]
    /** The number of other tenants, and their waiting jobs. */
    others: number
    othersWaiting: number
    /** False: an estimate, because too many jobs are waiting. */
    exact: boolean
  }
}

/** `GET dead?queue=…&from=0&count=50`: dead letters, the oldest first, without their data. */
export interface DeadLetters {
  queue: string
  from: number
  letters: {
    id: string
    priority: Priority
    tenant?: string
    attempt: number
    attempts: number
    ageMs: number
  }[]
}
