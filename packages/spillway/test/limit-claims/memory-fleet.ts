/** Setup of the claims with the memory store: time is virtual and exact. Loads no more than that needs. */
import type { Clock } from '../../src/core/time/clock.js'
import { memoryStore } from '../../src/store/memory/memory-store.js'
import type { Store } from '../../src/store/port.js'
import { createVirtualClock } from '../../src/testing/virtual-clock.js'

export interface Fleet {
  readonly kind: 'memory' | 'redis'
  /** Used in test titles. */
  readonly name: string
  readonly clock: Clock
  start(): Promise<void>
  stop(): Promise<void>
  /** The shared store, as one more pod sees it. */
  store(): Store
  sleep(ms: number): Promise<void>
  /** Advances time until the promise settles. */
  until<T>(promise: Promise<T>): Promise<T>
  /** For promises that wait only for the store; fails if they wait for anything else. */
  answered<T>(promise: Promise<T>): Promise<T>
  /** Sends a command to the server that owns its key, the second word. */
  send(...command: string[]): Promise<unknown>
  /** Sends a command to every server that owns keys and returns all replies. */
  everywhere(...command: string[]): Promise<unknown[]>
}

export function createMemoryFleet(): Fleet {
  const clock = createVirtualClock()
  const store = memoryStore({ clock })
  return {
    kind: 'memory',
    name: 'memory',
    clock,
    start: async () => {},
    stop: async () => {},
    store: () => store,
    sleep: (ms) => clock.advance(ms),
    until: (promise) => clock.until(promise),
    answered: (promise) => Promise.race([promise, clock.settle().then(complain)]),
    send: async () => undefined,
    everywhere: async () => [],
  }
}

export function complain(): never {
  throw new Error('there was no answer')
}
