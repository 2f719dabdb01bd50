/**
 * Readings of this process from Node and the kernel. Each reading covers the time since the last
 * one of its kind. Nothing is measured before `start` or after `stop`.
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
  #memory = 0

  /** `delay`: whether to measure the event loop's delay, which wakes the process every 10 ms. */
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

  /** Share of the container's memory or of V8's heap limit, whichever is higher. */
  memory(): number {
    try {
      const { rss, heapUsed } = process.memoryUsage()
      this.#memory = Math.max(rss / this.#memoryBytes, heapUsed / this.#heapBytes)
    } catch {
      // Node reads a file, which fails while the process has too many open files. Then the last figure counts.
    }
    return this.#memory
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

/** Without a limit Node returns 0 or an absurdly large number. */
function memoryAllowed(): number {
  const limit = process.constrainedMemory()
  return limit > 0 && limit < totalmem() ? limit : totalmem()
}

/** The cores of the machine, or the container's share of them. */
function coresAllowed(): number {
  const cores = availableParallelism()
  try {
    const [quota, period] = readFileSync('/sys/fs/cgroup/cpu.max', 'utf8').split(' ').map(Number)
    const given = (quota as number) / (period as number)
    return given > 0 ? Math.min(cores, given) : cores
  } catch {
    // There are no cgroups, or another version of them.
    return cores
  }
}
