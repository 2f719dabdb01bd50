/**
 * The breakers of the store, or this pod's own while the store is unreachable. Outcomes of an outage stay in this
 * pod: when the store is back its state counts, and nothing that happened in between is reported to it.
 */
import type { Clock } from '../../core/time/clock.js'
import { createLocalBreakers, type LocalBreakers } from '../../store/local-breakers.js'
import type {
  BreakerCommand,
  BreakerRef,
  BreakerReport,
  BreakerStore,
  BreakerView,
  BreakerWatcher,
  ProbeReply,
  ProbeRequest,
  SyncRequest,
} from '../../store/port.js'
import type { OutageRule } from '../outage/rules.js'
import type { StoreWatch } from '../outage/store-watch.js'

export class OutageBreakers implements BreakerStore {
  readonly #remote: BreakerStore
  readonly #watch: StoreWatch
  readonly #clock: Clock
  readonly #rule: OutageRule
  #local: LocalBreakers

  constructor(remote: BreakerStore, watch: StoreWatch, clock: Clock, rule: OutageRule) {
    this.#remote = remote
    this.#watch = watch
    this.#clock = clock
    this.#rule = rule
    this.#local = createLocalBreakers(clock)
  }

  /** An outage begins, with new breakers. */
  begin(): void {
    this.#local = createLocalBreakers(this.#clock)
  }

  /** Continues from the fleet's last known state. With another rule than `local` the breaker begins closed. */
  adopt(ref: BreakerRef, view: BreakerView, ageMs: number): void {
    if (this.#rule === 'local') this.#local.adopt(ref, view, ageMs)
  }

  report(request: BreakerReport): BreakerView | Promise<BreakerView> {
    return this.#useStore(
      () => this.#remote.report(request),
      () => this.#reportLocally(request),
    )
  }

  probe(request: ProbeRequest): ProbeReply | Promise<ProbeReply> {
    return this.#useStore(
      () => this.#remote.probe(request),
      () => this.#local.probe(request) as ProbeReply,
    )
  }

  sync(requests: readonly SyncRequest[]): BreakerView[] | Promise<BreakerView[]> {
    return this.#useStore(
      () => this.#remote.sync(requests),
      () => this.#local.sync(requests) as BreakerView[],
    )
  }

  /** Operator commands apply to all pods, so they need the store. A trip caused by a call also works locally. */
  command(request: BreakerCommand): BreakerView | Promise<BreakerView> {
    const { command } = request
    const isFound = command.kind === 'trip' && command.generation !== undefined
    if (!isFound) return this.#remote.command(request)
    return this.#useStore(
      () => this.#remote.command(request),
      () => this.#local.command(request) as BreakerView,
    )
  }

  watch(watcher: BreakerWatcher): () => void {
    if (this.#watch.status === 'off') return () => {}
    return this.#remote.watch({
      onView: (guard, lane, view) => {
        if (this.#watch.reachable) watcher.onView(guard, lane, view)
      },
      onGap: () => {
        this.#watch.pulseNow()
        if (this.#watch.reachable) watcher.onGap()
      },
    })
  }

  #reportLocally(request: BreakerReport): BreakerView {
    return this.#local.report(
      this.#rule === 'allow' ? { ...request, outcomes: [], hung: undefined } : request,
    )
  }

  #useStore<T>(remote: () => T | Promise<T>, local: () => T): T | Promise<T> {
    if (!this.#watch.reachable) return local()
    return Promise.resolve(remote()).catch((error) => {
      this.#watch.failed(error)
      if (this.#watch.reachable) throw error
      return local()
    })
  }
}
