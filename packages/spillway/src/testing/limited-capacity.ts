/**
 * Work with a limited capacity. Beyond it, jobs wait, or all jobs share it and get slower. Progress
 * is measured in work and not in time. So a change of speed affects running jobs, and one timer
 * suffices for any number of jobs.
 */

import { type Linked, LinkedList } from '../core/collections/linked-list.js'
import type { Clock, Timer } from '../core/time/clock.js'
import { type HeapItem, TimerHeap } from './timer-heap.js'

export class Job implements HeapItem, Linked<Job> {
  index = -1
  before: Job | undefined
  after: Job | undefined
  /** The progress at which it is done. */
  dueMs = 0
  order = 0
  state: 'new' | 'waiting' | 'running' | 'over' = 'new'

  constructor(
    /** Duration at full speed. Infinite: it never ends. */
    readonly workMs: number,
    readonly done: () => void,
  ) {}
}

export interface LimitedCapacityOptions {
  clock: Clock
  capacity: number
  beyondCapacity: 'queue' | 'slow'
}

export class LimitedCapacity {
  readonly #clock: Clock
  #capacity: number
  readonly #shared: boolean
  readonly #running = new TimerHeap<Job>()
  readonly #waiting = new LinkedList<Job>()
  #runningCount = 0
  #begun = 0
  #slowdown = 1
  #speed = 1
  /** At `#sinceMs` the progress was `#progressMs`. Since then it has grown at this speed. */
  #sinceMs = 0
  #progressMs = 0
  #timer: Timer | undefined
  #armedFor: Job | undefined

  constructor({ clock, capacity, beyondCapacity }: LimitedCapacityOptions) {
    this.#clock = clock
    this.#capacity = capacity
    this.#shared = beyondCapacity === 'slow'
  }

  get waiting(): number {
    return this.#waiting.length
  }

  add(job: Job): void {
    if (!this.#shared && this.#runningCount >= this.#capacity) {
      job.state = 'waiting'
      this.#waiting.push(job)
      return
    }
    this.#begin(job)
    this.#adjust()
  }

  /** Removes a job and frees its capacity. */
  remove(job: Job): void {
    if (job.state === 'waiting') this.#waiting.remove(job)
    else if (job.state === 'running') this.#end(job)
    job.state = 'over'
  }

  /** Makes everything take `factor` times as long. */
  slowDown(factor: number): void {
    this.#slowdown = factor
    this.#adjust()
  }

  /** Sets the capacity. Running jobs continue. */
  resize(capacity: number): void {
    this.#capacity = capacity
    this.#beginNext()
    this.#adjust()
  }

  #beginNext(): void {
    while (this.#runningCount < this.#capacity) {
      const next = this.#waiting.first
      if (next === undefined) return
      this.#waiting.remove(next)
      this.#begin(next)
    }
  }

  #begin(job: Job): void {
    job.state = 'running'
    job.dueMs = this.#progress() + job.workMs
    job.order = this.#begun++
    this.#runningCount++
    this.#running.push(job)
  }

  #end(job: Job): void {
    job.state = 'over'
    this.#running.remove(job)
    this.#runningCount--
    this.#beginNext()
    this.#adjust()
  }

  #progress(): number {
    return this.#progressMs + (this.#clock.now() - this.#sinceMs) * this.#speed
  }

  /** Adjusts speed and timer to the running jobs. */
  #adjust(): void {
    const isOverCapacity = this.#shared && this.#runningCount > this.#capacity
    const speed = (isOverCapacity ? this.#capacity / this.#runningCount : 1) / this.#slowdown
    if (speed !== this.#speed) {
      this.#progressMs = this.#progress()
      this.#sinceMs = this.#clock.now()
      this.#speed = speed
      this.#armedFor = undefined
    }
    const next = this.#running.first
    if (next !== undefined && next === this.#armedFor) return
    this.#timer?.cancel()
    this.#timer = undefined
    this.#armedFor = next
    if (next === undefined || next.dueMs === Number.POSITIVE_INFINITY) return
    const leftMs = (next.dueMs - this.#progress()) / this.#speed
    this.#timer = this.#clock.schedule(leftMs, () => {
      this.#end(next)
      next.done()
    })
  }
}
