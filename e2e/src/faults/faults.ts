/**
 * Four pods under saturating load share one store. Injects each fault into the store, and reports the waits and results
 * of calls, the calls at the vendor, and the time until the pods share their state again.
 */
import { mkdtempSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import {
  atMost,
  crossTable,
  type Figure,
  reported,
  type Scenario,
  UsageError,
} from '../scenario.js'
import { Fleet, LIMIT, WINDOW_MS } from './fleet.js'
import { FAULTS, type Fault } from './matrix.js'

const DEADLINE_MS = 100
/** Delay that a busy machine adds to a timer of 100 ms. */
const NOISE_MS = 60
const FAULT_MS = WINDOW_MS * 2
const BEFORE_MS = WINDOW_MS + 2_000
const LONGEST_RETURN_MS = 30_000

export const faults: Scenario = {
  name: 'faults',
  what: `${FAULTS.length} ways to lose a store, four pods; --only NAME for one`,
  seconds: FAULTS.length * 35,
  options: ['only'],
  async run({ only }) {
    const chosen = FAULTS.filter(({ name }) => only === undefined || name === only)
    if (chosen.length === 0) {
      throw new UsageError(
        `unknown fault "${only}"; expected one of: ${FAULTS.map(({ name }) => name).join(', ')}`,
      )
    }
    const figures: Figure[] = []
    for (const fault of chosen) {
      process.stderr.write(`  ${fault.name} …\n`)
      figures.push(...(await suffer(fault)))
    }
    return figures
  },
  table: crossTable,
  page: 'docs/project/fault-results.md',
}

async function suffer(fault: Fault): Promise<Figure[]> {
  const fleet = new Fleet(fault.durable ? mkdtempSync(join(tmpdir(), 'faults-')) : undefined)
  await fleet.start()
  try {
    await sleep(BEFORE_MS)
    // The first windows are over, so the start of the fleet is not measured.
    fleet.vendor.arrivals.length = 0
    await sleep(WINDOW_MS)
    for (const pod of fleet.pods) pod.send('reset')
    await fault.inject(fleet)
    const counting = countCalls(fleet, FAULT_MS)
    if (fault.lift !== undefined) {
      await counting
      await fault.lift(fleet)
    }
    const endedMs = performance.now()
    const [breakerMs, callsDuring] = await Promise.all([
      tripAndSee(fleet, endedMs),
      counting,
      fleet.untilShared(LONGEST_RETURN_MS),
    ])
    await sleep(WINDOW_MS * 2)
    // Pods that have never noticed the fault have been in these states since before its end.
    const afterEnd = (atMs: number) => Math.max(0, atMs - endedMs) / 1_000
    const reached = afterEnd(fleet.sinceMs((status) => status !== 'unreachable'))
    const joined = afterEnd(fleet.sinceMs((status) => status === 'shared'))
    const reports = await Promise.all(fleet.pods.map((pod) => pod.report()))
    const sum = (of: (report: (typeof reports)[number]) => number) =>
      reports.reduce((total, report) => total + of(report), 0)
    const { name } = fault
    const longest = Math.max(...reports.map(({ longestWaitMs }) => longestWaitMs))
    const windows = WINDOW_MS / 1_000
    const stall = Math.max(...reports.map(({ stallMs }) => stallMs))
    return [
      reported(`${name}: longest stall of a pod, ms`, stall),
      // A pod without CPU time notices a passed deadline late.
      atMost(`${name}: longest wait, ms`, longest, Math.ceil(DEADLINE_MS + NOISE_MS + stall)),
      atMost(
        `${name}: unhandled rejections`,
        sum(({ unhandled }) => unhandled),
        0,
      ),
      atMost(
        `${name}: false refusals`,
        sum(({ falseRefusals }) => falseRefusals),
        0,
      ),
      atMost(`${name}: worst window, %`, (fleet.vendor.worst(WINDOW_MS) / LIMIT) * 100, 105),
      reported(
        `${name}: used during the fault, %`,
        (callsDuring / ((LIMIT * FAULT_MS) / WINDOW_MS)) * 100,
      ),
      atMost(`${name}: store reached again, s`, reached, 2),
      atMost(`${name}: breaker shared again, s`, breakerMs / 1_000, 2.5),
      atMost(`${name}: limits shared again, s`, joined, windows + 2.5),
    ]
  } finally {
    await fleet.stop()
  }
}

/** Calls that reach the vendor within this time. */
async function countCalls({ vendor }: Fleet, ms: number): Promise<number> {
  const before = vendor.arrivals.length
  await sleep(ms)
  return vendor.arrivals.length - before
}

/**
 * One pod opens an unused breaker. Measures the time until all others have received it; repeats while the store is
 * unreachable.
 */
async function tripAndSee({ pods }: Fleet, endedMs: number): Promise<number> {
  const endMs = performance.now() + LONGEST_RETURN_MS
  while (performance.now() < endMs) {
    if (pods.every(({ openedMs }) => openedMs !== undefined)) {
      return Math.max(...pods.map(({ openedMs = 0 }) => openedMs)) - endedMs
    }
    pods[0]?.send('trip')
    await sleep(100)
  }
  return Number.POSITIVE_INFINITY
}
