/**
 * The source of all exporters: current values, read when they are needed. Nothing is counted for
 * exporters.
 */
import { callSafely } from '../core/events.js'
import { having, object, optional, validate } from '../core/options/checks.js'
import type { FleetReport } from '../guard/fleet/fleet-report.js'
import type { GuardTimings } from '../guard/pipeline/counters.js'
import type { SpillwaySnapshot } from '../guard/snapshot.js'
import type { Spillway } from '../guard/spillway.js'

/** The part of a `Spillway` that metrics read. */
export type MeteredSpillway = Pick<Spillway, 'snapshot' | 'fleet' | 'timings'>

/** Snapshot of a server's gate. */
export interface MeteredServer {
  /** State and counts at this moment. */
  snapshot(): {
    /** Name of the server. */
    name: string
    /** Requests that were admitted. */
    admitted: number
    /** Requests admitted although the store did not answer. */
    unchecked: number
    /** Refused requests by code. */
    refused: readonly { code: string; count: number }[]
  }
}

/** Sources of metrics. */
export interface MetricsOptions {
  /** The guards and job queues to report on. */
  spillway: MeteredSpillway
  /** Server adapters to report on: what `spillwayHttp` and its variants return. Default: none. */
  servers?: readonly MeteredServer[]
  /** Name of the label with the guard's name. Default: `guard`. */
  guardLabel?: string
}

/** All values at one moment. */
export interface View {
  readonly guardLabel: string
  readonly snapshot: SpillwaySnapshot
  readonly fleet: FleetReport
  readonly timings: readonly GuardTimings[]
  readonly servers: readonly ReturnType<MeteredServer['snapshot']>[]
}

const readSpillway = having<MeteredSpillway>('a spillway', 'snapshot', 'fleet', 'timings')
const readServer = having<MeteredServer>('a gate of a server', 'snapshot')

/** Concurrent readers share one view, so the store is read once. */
export function createSource(options: MetricsOptions): () => Promise<View> {
  const { spillway, servers = [], guardLabel = 'guard' } = options
  validate('metrics', { spillway }, object({ spillway: readSpillway }))
  for (const server of servers) validate('metrics.servers', server, optional(readServer))
  // From now on durations are measured.
  spillway.timings()
  let underWay: Promise<View> | undefined
  const read = async (): Promise<View> => ({
    guardLabel,
    fleet: await spillway.fleet(),
    snapshot: spillway.snapshot(),
    timings: spillway.timings(),
    servers: servers.flatMap((each) =>
      callSafely('metrics', 'server.snapshot', () => [each.snapshot()], []),
    ),
  })
  return () => {
    underWay ??= read().finally(() => {
      underWay = undefined
    })
    return underWay
  }
}
