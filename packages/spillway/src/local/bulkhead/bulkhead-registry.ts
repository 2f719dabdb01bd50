import { createRegistry, type Registry } from '../registry.js'
import { type Bulkhead, type BulkheadOptions, createBulkhead } from './bulkhead.js'

export type BulkheadRegistry = Registry<Bulkhead, Omit<BulkheadOptions, 'name'>>

/** One bulkhead per downstream: `bulkheads.get('payments').run(…)`. */
export function createBulkheadRegistry(defaults: Omit<BulkheadOptions, 'name'>): BulkheadRegistry {
  // Validates the defaults now and not when the first downstream is called.
  createBulkhead(defaults)
  return createRegistry(defaults, createBulkhead)
}
