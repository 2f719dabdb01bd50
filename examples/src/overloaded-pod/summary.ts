/** The figures of an act. */
import { PHASES } from './scenario.js'
import type { Vendor } from './vendor.js'
import {
  arrivedIn,
  countOf,
  goodputIn,
  OUTCOMES,
  type Outcome,
  partOf,
  percentile,
  type Visit,
} from './visits.js'

export interface Summary {
  /** Answers in time, per second, in each phase. */
  goodput: Record<keyof typeof PHASES, number>
  /** Milliseconds from the end of the overload until clients are served again; none, if never. */
  recoveryMs: number | undefined
  /** Outcomes of the clients that arrived during the overload, as fractions. */
  overload: Record<Outcome, number>
  answerP50Ms: number | undefined
  answerP99Ms: number | undefined
  refusalP99Ms: number | undefined
  /** Vendor calls per request that was not refused at once. */
  callsPerRequest: number
  peakInFlight: number
}

export function summarise(visits: readonly Visit[], vendor: Vendor): Summary {
  const { before, overload, after } = PHASES
  const inOverload = arrivedIn(visits, overload)
  const part = (outcome: Outcome) => [outcome, partOf(inOverload, outcome)] as const
  return {
    goodput: {
      before: goodputIn(visits, before),
      overload: goodputIn(visits, overload),
      after: goodputIn(visits, after),
    },
    recoveryMs: recoveryMs(visits),
    overload: Object.fromEntries(OUTCOMES.map(part)) as Record<Outcome, number>,
    answerP50Ms: percentile(inOverload, 'answered', 0.5),
    answerP99Ms: percentile(inOverload, 'answered', 0.99),
    refusalP99Ms: percentile(inOverload, 'refused', 0.99),
    callsPerRequest: vendor.calls / (visits.length - countOf(visits, 'refused')),
    peakInFlight: vendor.peakInFlight,
  }
}

const SLICE_MS = 250
const SERVED_AGAIN = 0.9

/** The end of the last slice after the overload whose clients were not nearly all answered. */
function recoveryMs(visits: readonly Visit[]): number | undefined {
  const { startMs, endMs } = PHASES.after
  let recoveredMs = startMs
  for (let sliceMs = startMs; sliceMs < endMs; sliceMs += SLICE_MS) {
    const clients = arrivedIn(visits, { startMs: sliceMs, endMs: sliceMs + SLICE_MS })
    if (partOf(clients, 'answered') < SERVED_AGAIN) recoveredMs = sliceMs + SLICE_MS
  }
  return recoveredMs < endMs ? recoveredMs - startMs : undefined
}
