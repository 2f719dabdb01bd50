/**
 * The breakers of the fleet while the store is there, and this pod's own while it is not. What is
 * learnt in an outage stays here: when the store is back, its word counts, and nothing is told to it
 * that happened without it.
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

  /** An outage begins: nothing of the last one is left. */
  begin(): void {
    this.#local = createLocalBreakers(this.#clock)
  }

  /** Goes on from how it was. A breaker that is to let everything through begins closed. */
  adopt(ref: BreakerRef, view: BreakerView, ageMs: number): void {
    if (this.#rule === 'local') this.#local.adopt(ref, view, ageMs)
  }

  report(request: BreakerReport): BreakerView | Promise<BreakerView> {
    return this.#ask(
      () => this.#remote.report(request),
      () => this.#reportHere(request),
    )
  }

  probe(request: ProbeRequest): ProbeReply | Promise<ProbeReply> {
    return this.#ask(
      () => this.#remote.probe(request),
      () => this.#local.probe(request) as ProbeReply,
    )
  }

  sync(requests: readonly SyncRequest[]): BreakerView[] | Promise<BreakerView[]> {
    return this.#ask(
      () => this.#remote.sync(requests),
      () => this.#local.sync(requests) as BreakerView[],
    )
  }

  /** By hand is for all pods or for none. */
  command(request: BreakerCommand): BreakerView | Promise<BreakerView> {
    return this.#remote.command(request)
  }

  watch(watcher: BreakerWatcher): () => void {
    if (this.#watch.status === 'off') return () => {}
    return this.#remote.watch({
      onView: (guard, lane, view) => {
        if (this.#watch.reachable) watcher.onView(guard, lane, view)
      },
      onGap: () => {
        this.#watch.lookNow()
        if (this.#watch.reachable) watcher.onGap()
      },
    })
  }

  #reportHere(request: BreakerReport): BreakerView {
    return this.#local.report(
      this.#rule === 'open' ? { ...request, outcomes: [], hung: undefined } : request,
    )
  }

  #ask<T>(remote: () => T | Promise<T>, local: () => T): T | Promise<T> {
    if (!this.#watch.reachable) return local()
    return Promise.resolve(remote()).catch((error) => {
      this.#watch.failed(error)
      if (this.#watch.reachable) throw error
      return local()
    })
  }
}
