import { createRegistry, type Registry } from '../registry.js'
import { type Bulkhead, type BulkheadOptions, createBulkhead } from './bulkhead.js'

export type BulkheadRegistry = Registry<Bulkhead, Omit<BulkheadOptions, 'name'>>

/** A bulkhead per dependency: `bulkheads.get('payments').run(…)`. */
export function createBulkheadRegistry(defaults: Omit<BulkheadOptions, 'name'>): BulkheadRegistry {
  // A bad default is reported now, not when the first dependency is called.
  createBulkhead(defaults)
  return createRegistry(defaults, createBulkhead)
}
