/** A pod with a real guard. */
import {
  type CallContext,
  createSpillway,
  type Guard,
  type GuardOptions,
  type Spillway,
} from 'spillway'
import { withoutNestedCalls } from 'spillway/internal'
import type { Store } from 'spillway/shared'
import type { PodTools } from 'spillway/testing'
import type { SimulatedCall, SimulatedPod } from './pod.js'
import type { VendorLink } from './vendor-link.js'

export const GUARD_NAME = 'vendor'

export class GuardedPod implements SimulatedPod {
  readonly #spillway: Spillway
  readonly #guard: Guard
  readonly #link: VendorLink

  constructor(
    { name, clock, random }: PodTools,
    store: Store,
    options: GuardOptions,
    link: VendorLink,
    expectedPods: number,
  ) {
    this.#link = link
    this.#spillway = createSpillway({ store, pod: name, clock, random, expectedPods })
    this.#guard = this.#spillway.guard(GUARD_NAME, options)
    withoutNestedCalls(this.#guard)
  }

  run({ client, user, signal }: SimulatedCall): Promise<unknown> {
    const { priority, tier, lane, cost, timeoutMs } = client
    const call =
      cost === undefined ? this.#call : (context: CallContext) => this.#make(context, cost)
    return this.#guard.run(call, { user, priority, tier, lane, cost, timeoutMs, signal })
  }

  readonly #call = (context: CallContext): Promise<unknown> => this.#make(context, undefined)

  #make(context: CallContext, cost: SimulatedCall['client']['cost']): Promise<unknown> {
    if (context.attempt === 1 && !context.hedge) this.#link.vendor.noteFirstAttempt()
    if (this.#link.vendor.cancels) return this.#link.call({ signal: context.signal, cost }, context)
    return this.#link.call(cost && { cost }, context)
  }

  get waiting(): number {
    return this.#guard.snapshot().queue.waiting
  }

  close(graceMs: number): Promise<void> {
    return this.#spillway.close({ graceMs })
  }
}
