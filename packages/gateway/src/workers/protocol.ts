/** The calls between the supervisor and its workers. */
import type { Socket } from 'node:net'
import type { DecisionPage, KnownRequest, PeerDecisions } from '@spillway/dashboard'
import type { ReloadReport } from '../reload/reloads.js'

/** Environment variable that is set in workers. */
export const WORKER_VARIABLE = 'SPILLWAY_WORKER'

/** The contents of the configuration and of the files it refers to, by path. */
export type FileContents = readonly (readonly [path: string, content: string | undefined])[]

/** A metric as prom-client's `getMetricsAsJSON` returns it. */
export interface MetricJson {
  readonly name: string
  readonly help: string
  readonly type: unknown
  readonly aggregator?: string | undefined
  readonly values: readonly {
    readonly value: number
    readonly labels: Readonly<Record<string, string | number>>
    readonly metricName?: string
  }[]
}

export interface WorkerStart {
  /** 1 to `workers`. */
  readonly slot: number
  readonly contents: FileContents
}

/** The state of all workers, which every worker reports in its health answers. */
export interface WorkersState {
  readonly ready: number
  readonly total: number
  /** Of those that are ready: how many are overloaded (`health.overload`). */
  readonly overloaded: number
  /** False until all workers have been ready once and the data port is open. */
  readonly started: boolean
}

/** The ports whose connections a supervisor accepts and a worker serves. */
export type PortName = 'data' | 'admin'

/** Methods of a worker, called by the supervisor. */
export interface WorkerApi {
  reload(request: { cause: string; contents: FileContents }): Promise<ReloadReport>
  metrics(): Promise<readonly MetricJson[]>
  snapshot(): object
  /** Its decisions after a cursor, for the dashboard of another worker. */
  decisions(request: { cursor: string | undefined }): DecisionPage | Promise<DecisionPage>
  /** Data of the worker about a request. */
  find(requestId: string): KnownRequest | Promise<KnownRequest>
  workersChanged(state: WorkersState): void
  /**
   * Serves a connection, see `hand-over.ts`. False: it does not take it, because it is being drained. With `isLast`
   * all workers are, so it takes the connection until it is closed.
   */
  serve(to: { port: PortName; isLast: boolean }, socket?: Socket): boolean
  drain(options: { graceMs?: number; delayMs?: number }): void
}

/** Methods of the supervisor, called by a worker. */
export interface SupervisorApi {
  /**
   * The start configuration. The worker requests it after loading its code; a spare process gets its answer when it
   * is needed.
   */
  configuration(): Promise<WorkerStart>
  /** The worker serves connections. */
  ready(): void
  /** The worker is overloaded, or no longer is. */
  overloaded(isOverloaded: boolean): void
  /** The worker cannot start. */
  failed(reason: { code: string | undefined; message: string }): void
  /** Metrics of all workers in the text format of Prometheus. */
  metrics(): Promise<string>
  snapshots(): Promise<object>
  /** Decisions of the other workers after these cursors, by slot. */
  decisions(cursors: Readonly<Record<string, string>>): Promise<PeerDecisions>
  /** Data of the other workers about a request. */
  find(requestId: string): Promise<readonly KnownRequest[]>
  reload(cause: string): Promise<ReloadReport>
}
