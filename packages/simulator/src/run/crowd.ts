/** The clients of one group: arrivals, requests, retries and disconnects. */

import { type Clock, SpillwayError } from 'spillway'
import { LeaveSignal } from 'spillway/internal'
import type { Random } from 'spillway/testing'
import type { ClientRecord, RunRecord } from '../measure/run-record.js'
import type { CheckedClient } from '../scenario/read-scenario.js'
import { drawFrom } from '../scenario/spread.js'
import type { SimulatedCall } from './pod.js'

/** Pause of a closed-loop client that was refused immediately, so that virtual time advances. */
const AFTER_FAILURE_MS = 100

export interface CrowdOptions {
  readonly client: CheckedClient
  readonly clock: Clock
  readonly random: Random
  readonly record: RunRecord
  readonly untilMs: number
  send(call: SimulatedCall, answered: () => void, failed: (error: unknown) => void): void
}

export class Crowd {
  /** Requests in flight. */
  open = 0
  readonly #options: CrowdOptions
  readonly #record: ClientRecord
  readonly #untilMs: number
  /** Created once per client: V8 compares known strings faster. */
  readonly #users: string[] = []
  readonly #arriveNext = () => this.#arrive()
  #came = 0

  constructor(options: CrowdOptions) {
    this.#options = options
    const { client, record } = options
    this.#record = record.clients.get(client.name)!
    this.#untilMs = Math.min(options.untilMs, client.untilMs ?? Number.POSITIVE_INFINITY)
  }

  begin(): void {
    const { client, clock, random } = this.#options
    clock.schedule(client.fromMs, () => {
      if (client.burst !== undefined) {
        for (let each = 0; each < client.burst; each++) this.#request(nothing)
      } else if (client.callers !== undefined) {
        for (let each = 0; each < client.callers; each++) {
          // Spread over time, unless they have no pause between requests.
          clock.schedule(random() * draw(client.thinkMs, random), () => this.#keepCalling())
        }
      } else {
        this.#arrive()
      }
    })
  }

  #arrive(): void {
    const { client, clock, random } = this.#options
    if (clock.now() >= this.#untilMs) return
    this.#request(nothing)
    clock.schedule((-Math.log(1 - random()) / client.rps!) * 1_000, this.#arriveNext)
  }

  #keepCalling(): void {
    const { client, clock, random } = this.#options
    if (clock.now() >= this.#untilMs) return
    this.#request((well) => {
      const thinkMs = draw(client.thinkMs, random)
      clock.schedule(well ? thinkMs : Math.max(AFTER_FAILURE_MS, thinkMs), () =>
        this.#keepCalling(),
      )
    })
  }

  #request(over: (well: boolean) => void): void {
    const { client, clock, random, record } = this.#options
    const cameMs = clock.now()
    const number = this.#came++
    this.#record.offered[record.at(cameMs)]!++
    this.open++
    const user = client.users === undefined ? undefined : this.#user(number % client.users)
    const hangsUp = client.hangUps !== undefined && random() < client.hangUps.share
    const signal = hangsUp ? new LeaveSignal() : undefined
    let ended = false
    const end = (how: 'served' | 'lost' | 'left') => {
      if (ended) return
      ended = true
      this.open--
      record.end(this.#record, cameMs, clock.now(), how)
      over(how === 'served')
    }
    if (signal !== undefined) {
      clock.schedule(draw(client.hangUps!.afterMs, random), () => {
        end('left')
        signal.abort(new DOMException('the caller hung up', 'AbortError'))
      })
    }
    this.#send({ client, user, signal }, 1, end)
  }

  #user(number: number): string {
    this.#users[number] ??= `user-${number}`
    return this.#users[number]
  }

  #send(call: SimulatedCall, attempt: number, end: (how: 'served' | 'lost') => void): void {
    const { client, clock, random, record } = this.#options
    this.#options.send(
      call,
      () => end('served'),
      (error) => {
        if (error instanceof SpillwayError) record.refuse(error.code, clock.now())
        else record.failed[record.at(clock.now())]!++
        if (attempt >= (client.retries?.attempts ?? 1) || call.signal?.aborted) return end('lost')
        const delayMs = draw(client.retries!.delayMs, random)
        clock.schedule(delayMs, () => this.#send(call, attempt + 1, end))
      },
    )
  }
}

const nothing = () => {}

function draw(spread: CheckedClient['thinkMs'], random: Random): number {
  const from = drawFrom(spread)
  return typeof from === 'number' ? from : from(random)
}
