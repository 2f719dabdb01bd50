import type { Check } from '../core/options/checks.js'
import type { Store } from '../store/port.js'

export const readStore: Check<Store> = (value, path, problems) => {
  const store = value as Partial<Store> | undefined
  if (typeof store?.limits?.take !== 'function') {
    problems.push({ path, message: 'must be a store: memoryStore() or redisStore(…)' })
  }
  return store as Store
}
