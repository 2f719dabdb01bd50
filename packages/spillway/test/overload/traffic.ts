/** Open-loop traffic in virtual time and its results. */

import { SpillwayError } from '../../src/core/errors.js'
import type { Random } from '../../src/core/random.js'
import type { VirtualClock } from '../../src/testing/virtual-clock.js'

export interface Visit {
  readonly kind: string
  readonly cameMs: number
  tookMs: number
  /** `served`, the code of a refusal, or `failed`. */
  fate: string
}

export interface Stream {
  kind: string
  /** Calls per second on average, at random times. */
  rps: number
  fromMs?: number
  untilMs: number
  ask: () => Promise<unknown>
}

/** Runs until all calls have ended. */
export async function play(
  clock: VirtualClock,
  random: Random,
  streams: readonly Stream[],
): Promise<Visit[]> {
  const visits: Visit[] = []
  const open: Promise<void>[] = []
  for (const stream of streams) open.push(send(clock, random, stream, visits))
  await clock.until(Promise.all(open))
  return visits
}

function send(
  clock: VirtualClock,
  random: Random,
  { kind, rps, fromMs = 0, untilMs, ask }: Stream,
  visits: Visit[],
): Promise<void> {
  const ended: Promise<void>[] = []
  return new Promise((resolve) => {
    const next = () => {
      if (clock.now() >= untilMs) return resolve(Promise.all(ended).then(() => {}))
      ended.push(visit(clock, kind, ask, visits))
      clock.schedule((-Math.log(1 - random()) / rps) * 1_000, next)
    }
    clock.schedule(fromMs, next)
  })
}

async function visit(
  clock: VirtualClock,
  kind: string,
  ask: () => Promise<unknown>,
  visits: Visit[],
): Promise<void> {
  const visit: Visit = { kind, cameMs: clock.now(), tookMs: 0, fate: 'served' }
  visits.push(visit)
  try {
    await ask()
  } catch (error) {
    visit.fate = error instanceof SpillwayError ? error.code : 'failed'
  }
  visit.tookMs = clock.now() - visit.cameMs
}

/** Returns the answer if it arrives in time; the work continues after that. */
export function within<T>(clock: VirtualClock, ms: number, work: Promise<T>): Promise<T> {
  work.catch(() => {})
  return new Promise((resolve, reject) => {
    const timer = clock.schedule(ms, () => reject(new Error('too late')))
    work.then(resolve, reject).finally(() => timer.cancel())
  })
}

export function servedOf(visits: readonly Visit[]): Visit[] {
  return visits.filter(({ fate }) => fate === 'served')
}

export function shareServed(visits: readonly Visit[]): number {
  return servedOf(visits).length / visits.length
}

export function percentile(visits: readonly Visit[], part: number): number {
  const sorted = visits.map(({ tookMs }) => tookMs).sort((a, b) => a - b)
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * part))] ?? 0
}
