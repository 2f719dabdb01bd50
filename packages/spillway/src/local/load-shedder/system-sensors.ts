/**
 * What Node and the kernel say about this process. Each reading is about the time since the last one
 * of its kind. Nothing is measured between `start` and the first reading, or after `stop`.
 */
import { readFileSync } from 'node:fs'
import { availableParallelism, totalmem } from 'node:os'
import {
  type EventLoopUtilization,
  type IntervalHistogram,
  monitorEventLoopDelay,
  performance,
} from 'node:perf_hooks'
import { getHeapStatistics } from 'node:v8'
import type { Sensors } from './options.js'

const DELAY_RESOLUTION_MS = 10
const MICROSECONDS = 1_000_000

export class SystemSensors implements Sensors {
  readonly #cores = coresAllowed()
  readonly #memoryBytes = memoryAllowed()
  readonly #heapBytes = getHeapStatistics().heap_size_limit
  #loop: EventLoopUtilization | undefined
  #cpu: NodeJS.CpuUsage | undefined
  #cpuAtSeconds = 0
  #delay: IntervalHistogram | undefined

  /** `delay`: whether anybody wants to know; measuring it wakes the process every 10 ms. */
  start(delay: boolean): void {
    this.#loop = performance.eventLoopUtilization()
    this.#cpu = process.cpuUsage()
    this.#cpuAtSeconds = process.uptime()
    if (!delay) return
    this.#delay ??= monitorEventLoopDelay({ resolution: DELAY_RESOLUTION_MS })
    this.#delay.reset()
    this.#delay.enable()
  }

  stop(): void {
    this.#delay?.disable()
  }

  cpu(): number {
    const before = this.#cpu
    const beforeSeconds = this.#cpuAtSeconds
    this.#cpu = process.cpuUsage()
    this.#cpuAtSeconds = process.uptime()
    if (before === undefined) return 0
    const used = this.#cpu.user - before.user + this.#cpu.system - before.system
    const elapsed = (this.#cpuAtSeconds - beforeSeconds) * MICROSECONDS
    return elapsed > 0 ? used / elapsed / this.#cores : 0
  }

  /** Of the container's memory or of what V8 lets the heap grow to, whichever is nearer. */
  memory(): number {
    const { rss, heapUsed } = process.memoryUsage()
    return Math.max(rss / this.#memoryBytes, heapUsed / this.#heapBytes)
  }

  loopUtilization(): number {
    const now = performance.eventLoopUtilization()
    const before = this.#loop
    this.#loop = now
    return before === undefined ? 0 : performance.eventLoopUtilization(now, before).utilization
  }

  loopDelayMs(): number {
    const delay = this.#delay
    if (delay === undefined || delay.count === 0) return 0
    const ms = delay.percentile(99) / 1e6 - DELAY_RESOLUTION_MS
    delay.reset()
    return Math.max(0, ms)
  }
}

/** Node tells none, or an absurd number, where there is no limit. */
function memoryAllowed(): number {
  const limit = process.constrainedMemory()
  return limit > 0 && limit < totalmem() ? limit : totalmem()
}

/** The cores of the machine, or what a container was given of them. */
function coresAllowed(): number {
  const cores = availableParallelism()
  try {
    const [quota, period] = readFileSync('/sys/fs/cgroup/cpu.max', 'utf8').split(' ').map(Number)
    const given = (quota as number) / (period as number)
    return given > 0 ? Math.min(cores, given) : cores
  } catch {
    // No cgroups here, or others than these.
    return cores
  }
}
