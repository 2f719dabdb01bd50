/**
 * How this process fares, for whoever tells others of it: how late its event loop is, how busy, how large. One
 * gauge for all who ask, measured only while somebody has it open. Not for deciding anything: load shedders have
 * sensors of their own.
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
  /** What part of the time it was busy, 0 to 1. */
  loopBusy: number
  memoryMb: number
  /** Since the process began. */
  upMs: number
}

/** Twenty wake-ups a second: seldom enough to cost nothing, often enough to see every long turn. */
const RESOLUTION_MS = 50
/** Who asks again sooner gets the same answer, so that several askers do not halve each other's time. */
const FRESH_MS = 500
const MEGABYTE = 2 ** 20

let users = 0
let delay: IntervalHistogram | undefined
let loop: EventLoopUtilization | undefined
let last: ProcessReading | undefined
let lastAtMs = 0

/** Returns what ends it. */
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
    memoryMb: process.memoryUsage.rss() / MEGABYTE,
    upMs: atMs,
  }
  return last
}

function meanDelayMs(): number {
  if (delay === undefined || delay.count === 0) return 0
  const ms = delay.mean / 1e6 - RESOLUTION_MS
  delay.reset()
  return Math.max(0, ms)
}
