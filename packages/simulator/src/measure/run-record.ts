/** Figures of a running fleet, per interval of time, so that an hour needs no more memory than a minute. */
import { Latencies } from './latencies.js'

const STRETCHES = 240
const SHORTEST_MS = 50

export type BreakerState = 'closed' | 'open' | 'half-open'

/** Requests of one client, by arrival time. */
export class ClientRecord {
  readonly offered: Float64Array
  readonly served: Float64Array
  /** Clients that disconnected before the answer. They do not count as failures. */
  readonly left: Float64Array
  /** Time to a good answer. */
  readonly good: (Latencies | undefined)[] = []
  /** Time to the result, good or bad. */
  readonly ended: (Latencies | undefined)[] = []

  constructor(
    readonly name: string,
    stretches: number,
  ) {
    this.offered = new Float64Array(stretches)
    this.served = new Float64Array(stretches)
    this.left = new Float64Array(stretches)
  }
}

export class RunRecord {
  readonly stretchMs: number
  readonly stretches: number
  readonly clients: ReadonlyMap<string, ClientRecord>
  /** Figures by the time of the event. */
  readonly answered: Float64Array
  readonly failed: Float64Array
  readonly refused = new Map<string, Float64Array>()
  readonly vendorCalls: Float64Array
  /** First attempts of calls. */
  readonly firstAttempts: Float64Array
  readonly vendorAtOnce: Float64Array
  readonly throttled: Float64Array
  /** Requests that the vendor's first limit allows in each interval. */
  readonly allowed: Float64Array
  readonly pods: Float64Array
  readonly waiting: Float64Array
  readonly storeCommands: Float64Array
  readonly breaker: { atMs: number; state: BreakerState }[] = []
  probesAtOnce = 0
  opens = 0
  /** By limit of the vendor: usage of the fullest window, overall and by interval. */
  worstWindows: number[] = []
  windowUse: number[] = []

  constructor(
    readonly durationMs: number,
    clients: readonly string[],
  ) {
    this.stretchMs = Math.max(SHORTEST_MS, durationMs / STRETCHES)
    this.stretches = Math.ceil(durationMs / this.stretchMs)
    this.clients = new Map(
      clients.map((name) => [name, new ClientRecord(name, this.stretches + 1)]),
    )
    const zeros = () => new Float64Array(this.stretches + 1)
    this.answered = zeros()
    this.failed = zeros()
    this.vendorCalls = zeros()
    this.firstAttempts = zeros()
    this.vendorAtOnce = zeros()
    this.throttled = zeros()
    this.allowed = zeros()
    this.pods = zeros()
    this.waiting = zeros()
    this.storeCommands = zeros()
  }

  /** Events after the end are counted in an extra interval. */
  at(nowMs: number): number {
    return Math.min(this.stretches, Math.floor(nowMs / this.stretchMs))
  }

  refuse(code: string, nowMs: number): void {
    let counts = this.refused.get(code)
    if (counts === undefined) {
      counts = new Float64Array(this.stretches + 1)
      this.refused.set(code, counts)
    }
    counts[this.at(nowMs)]!++
  }

  /** Records the result of a request by its arrival time. */
  end(client: ClientRecord, cameMs: number, nowMs: number, how: 'served' | 'lost' | 'left'): void {
    const came = this.at(cameMs)
    if (how === 'left') {
      client.left[came]!++
      return
    }
    latenciesAt(client.ended, came).add(nowMs - cameMs)
    if (how === 'lost') return
    client.served[came]!++
    this.answered[this.at(nowMs)]!++
    latenciesAt(client.good, came).add(nowMs - cameMs)
  }
}

function latenciesAt(all: (Latencies | undefined)[], index: number): Latencies {
  const found = all[index] ?? new Latencies()
  all[index] = found
  return found
}
