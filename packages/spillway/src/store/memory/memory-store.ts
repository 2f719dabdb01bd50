/**
 * The store of a fleet of one: the same transitions as in Redis, on maps, with synchronous replies. Simulations
 * and most tests use it, too.
 */

import { object, validate } from '../../core/options/checks.js'
import { type Clock, createMicroseconds } from '../../core/time/clock.js'
import { clockOption } from '../../core/time/clock-options.js'
import type { Store } from '../port.js'
import { createMemoryBreakers } from './memory-breakers.js'
import { createMemoryLevels } from './memory-levels.js'
import { createMemoryLimits } from './memory-limits.js'
import { createMemoryPods } from './memory-pods.js'
import { createMemoryPulses } from './memory-pulses.js'
import { createMemoryQueues } from './memory-queue.js'

/** Options of `memoryStore()`. */
export interface MemoryStoreOptions {
  /** The clock to read. Default: the system clock. */
  clock?: Clock
}

const readOptions = object({ clock: clockOption })

/**
 * Creates a store in this process, for one pod or for tests.
 *
 * @example
 * const spillway = createSpillway({ store: memoryStore() })
 */
export function memoryStore(options: MemoryStoreOptions = {}): Store {
  const { clock } = validate('memoryStore', options, readOptions)
  const nowUs = createMicroseconds(clock)
  const pods = createMemoryPods(nowUs)
  const breakers = createMemoryBreakers(nowUs, pods.live)
  const { limits, change } = createMemoryLimits(nowUs, breakers.report)
  return {
    remote: false,
    limits,
    levels: createMemoryLevels(nowUs),
    breakers,
    pods,
    pulses: createMemoryPulses(nowUs),
    queues: createMemoryQueues(nowUs, { limits: change, breaker: breakers.change }),
    close: async () => {},
  }
}
