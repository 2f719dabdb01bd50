import { type Bulkhead, type BulkheadOptions, createBulkhead } from './bulkhead.js'
import { createRegistry, type Registry } from './registry.js'

export type BulkheadRegistry = Registry<Bulkhead, Partial<BulkheadOptions>>

/**
 * A bulkhead per dependency: `bulkheads.get('payments').run(…)`. What `get` is not told comes from
 * `defaults`.
 */
export function createBulkheadRegistry(defaults: Omit<BulkheadOptions, 'name'>): BulkheadRegistry {
  // A bad default is reported now, not when the first dependency is called.
  createBulkhead(defaults)
  return createRegistry((name, options) => createBulkhead({ ...defaults, ...options, name }))
}
