import type { Store } from '../../store/port.js'
import { isSharingOff } from './rules.js'
import { StoreWatch, type StoreWatchOptions } from './store-watch.js'

/** Undefined for a memory store, which is always reachable. */
export function watchOver(
  store: Store,
  { name, pod, clock, random, expectedPods }: Omit<StoreWatchOptions, 'pulses' | 'off'>,
): StoreWatch | undefined {
  if (!store.remote) return undefined
  const { pulses } = store
  return new StoreWatch({ name, pulses, pod, clock, random, expectedPods, off: isSharingOff() })
}
