/** Job queues, and what could not be done. */
import type { Priority } from '../../../core/options/priority.js'
import type { ByPriority } from './words.js'

export interface QueuesTick {
  at: number
  queues: QueueTick[]
}

export interface QueueTick {
  name: string
  guard: string
  /** Of that guard: the one whose limits and breaker its jobs go by. */
  lane: string
  waiting: number
  delayed: number
  active: number
  done: number
  dead: number
  paused: boolean
  oldestMs: number
  lapsed: number
  /** Of what waits. */
  byPriority: ByPriority
  byTenant: {
    /** Those with the most, at most eight; an empty name: jobs without a tenant. */
    top: { tenant: string; waiting: number; byPriority: ByPriority }[]
    /** How many others there are, and what waits of theirs. */
    others: number
    othersWaiting: number
    /** False: estimated, because too many wait. */
    exact: boolean
  }
}

/** `GET dead?queue=…&from=0&count=50`: dead letters, the oldest first. Nothing of what is in them. */
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
