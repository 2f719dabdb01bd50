/**
 * Independent clients: they arrive at random times, regardless of the pod's state, and disconnect when their patience
 * is over.
 */
import { SpillwayError } from 'spillway'
import type { Clock, Random } from 'spillway/testing'
import type { Pod } from './pod.js'
import { PATIENCE_MS, phaseAt } from './scenario.js'
import type { Outcome, Visit } from './visits.js'

export interface ClientsOptions {
  pod: Pod
  clock: Clock
  random: Random
  /** Record of each client at its arrival. Times count from the start. */
  visits: Visit[]
}

/** Sends clients until the last phase is over; resolves when the last one has gone. */
export function sendClients({ pod, clock, random, visits }: ClientsOptions): Promise<void> {
  const startMs = clock.now()
  const sinceStart = () => clock.now() - startMs
  let present = 0

  return new Promise((resolve) => {
    let nextMs: number | undefined = 0

    /** Real timers are late by a millisecond or two, which must not reduce the number of clients. */
    function welcomeAllDue(): void {
      while (nextMs !== undefined && nextMs <= sinceStart()) {
        welcome(nextMs)
        nextMs = momentAfter(nextMs, random)
      }
      if (nextMs !== undefined) clock.schedule(nextMs - sinceStart(), welcomeAllDue)
    }

    async function welcome(arrivedMs: number): Promise<void> {
      const visit: Visit = { arrivedMs, end: undefined }
      visits.push(visit)
      present++
      const patienceMs = Math.max(0, arrivedMs + PATIENCE_MS - sinceStart())
      const outcome = await visitPod(pod, clock, patienceMs)
      visit.end = { atMs: sinceStart(), outcome }
      present--
      if (nextMs === undefined && present === 0) resolve()
    }

    welcomeAllDue()
  })
}

/** The arrival time of the client after the one at `atMs`. */
function momentAfter(atMs: number, random: Random): number | undefined {
  const phase = phaseAt(atMs)
  if (phase === undefined) return undefined
  const nextMs = atMs + (-Math.log(1 - random()) * 1_000) / phase.offered
  // Arrivals are memoryless, so a time in the next phase is drawn again at that phase's rate.
  return nextMs < phase.endMs ? nextMs : momentAfter(phase.endMs, random)
}

function visitPod(pod: Pod, clock: Clock, patienceMs: number): Promise<Outcome> {
  return new Promise((resolve) => {
    const patience = clock.schedule(patienceMs, () => resolve('timed out'))
    const leave = (outcome: Outcome) => {
      patience.cancel()
      resolve(outcome)
    }
    pod.handle(patienceMs).then(
      () => leave('answered'),
      (error) => leave(outcomeOf(error)),
    )
  })
}

function outcomeOf(error: unknown): Outcome {
  if (!(error instanceof SpillwayError)) return 'failed'
  return error.status === 504 ? 'timed out' : 'refused'
}
