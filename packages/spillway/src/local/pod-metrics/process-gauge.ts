/**
 * Figures of this process for reports: delay and utilization of the event loop, and memory. All
 * readers share one gauge, which measures only while it is open. It decides nothing: load shedders
 * have their own sensors.
 */
import {
  type EventLoopUtilization,
  type IntervalHistogram,
  monitorEventLoopDelay,
  performance,
} from 'node:perf_hooks'

export interface ProcessReading {
  /** Mean delay of the event loop since the last reading. */
  loopMs: number
  /** Share of the time it was busy, 0 to 1. */
  loopBusy: number
  memoryMb: number
  /** Time since the process started. */
  upMs: number
}

/** Twenty wake-ups per second cost next to nothing and still show every long block. */
const RESOLUTION_MS = 50
/**
 * Readers within this time get the same figures, so that they do not shorten each other's period.
 */
const FRESH_MS = 500
const MEGABYTE = 2 ** 20

let users = 0
let delay: IntervalHistogram | undefined
let loop: EventLoopUtilization | undefined
let last: ProcessReading | undefined
let lastAtMs = 0

/** Returns a function that closes it. */
export function openProcessGauge(): () => void {
  if (users++ === 0) {
    delay ??= monitorEventLoopDelay({ resolution: RESOLUTION_MS })
    delay.reset()
    delay.enable()
    loop = performance.eventLoopUtilization()
    last = undefined
  }
  let open = true
  return () => {
    if (open && --users === 0) delay?.disable()
    open = false
  }
}

export function readProcess(): ProcessReading {
  const atMs = process.uptime() * 1_000
  if (last !== undefined && atMs - lastAtMs < FRESH_MS) return last
  const now = performance.eventLoopUtilization()
  const busy = loop === undefined ? 0 : performance.eventLoopUtilization(now, loop).utilization
  loop = now
  lastAtMs = atMs
  last = {
    loopMs: meanDelayMs(),
    loopBusy: busy,
    memoryMb: memoryMb(),
    upMs: atMs,
  }
  return last
}

/** Node reads it from a file, which fails while the process has too many open files. Then it is the last one. */
function memoryMb(): number {
  try {
    return process.memoryUsage.rss() / MEGABYTE
  } catch {
    return last?.memoryMb ?? 0
  }
}

function meanDelayMs(): number {
  if (delay === undefined || delay.count === 0) return 0
  const ms = delay.mean / 1e6 - RESOLUTION_MS
  delay.reset()
  return Math.max(0, ms)
}
