/** Commands and other messages on their way to a simulated remote store and back. */

import type { Timer } from '../core/time/clock.js'
import type { Store } from '../store/port.js'
import { StoreFailure } from '../store/store-failure.js'

export type PortName = Exclude<keyof Store, 'remote' | 'close'>
export type Commands<P extends PortName> = Omit<Store[P], 'watch' | 'onWake'>

/** The methods that are simulated. A method of the port that is missing here does not compile. */
export const COMMANDS: { [P in PortName]: Record<keyof Commands<P>, true> } = {
  limits: {
    take: true,
    settle: true,
    book: true,
    feedback: true,
    pause: true,
    change: true,
    figures: true,
    report: true,
  },
  levels: { check: true, refund: true },
  breakers: { report: true, probe: true, sync: true, command: true },
  pods: { beat: true, leave: true, sendCommand: true, list: true },
  pulses: { pulse: true },
  queues: {
    add: true,
    reserve: true,
    finish: true,
    extend: true,
    job: true,
    jobStatus: true,
    counts: true,
    dead: true,
    command: true,
  },
}

export class Command {
  /** Its caller has a reply, or an error. */
  settled = false
  /** Its result once it has run. */
  outcome: { reply: unknown } | { error: StoreFailure } | undefined
  deadline: Pick<Timer, 'cancel'> | undefined

  constructor(
    readonly port: PortName,
    readonly method: string,
    readonly args: unknown[],
    /** One way of its round trip. */
    readonly halfMs: number,
    readonly resolve: (reply: unknown) => void,
    readonly reject: (failure: StoreFailure) => void,
  ) {}

  get name(): string {
    return `${this.port}.${this.method}`
  }
}

/** The error that the client of a remote store would raise. */
export function failureOf({ name }: Command, error: unknown): StoreFailure {
  if (error instanceof StoreFailure) return error
  const message = error instanceof Error ? error.message : String(error)
  return new StoreFailure('server', `${name}: ${message}`, error)
}

/** Copies a message, so that neither end sees later changes of the other. For plain data only. */
export function copyMessage<T>(value: T): T {
  if (typeof value !== 'object' || value === null) return value
  if (Array.isArray(value)) return value.map(copyMessage) as T
  const original = value as Record<string, unknown>
  const copy: Record<string, unknown> = {}
  for (const key of Object.keys(original)) copy[key] = copyMessage(original[key])
  return copy as T
}
