/** Reads the state of lanes from the store, including lanes that this pod has not used. */
import type { BreakerSpec } from '../../store/breaker-spec.js'
import type { BreakerStore, BreakerView } from '../../store/port.js'
import { ALL_LANES } from '../lanes/lane-names.js'

/** In one round trip. An isolation of all lanes is part of the state of each lane. */
export async function readStates(
  store: BreakerStore,
  guard: string,
  lanes: readonly string[],
  { spec, per }: { spec: BreakerSpec; per: 'lane' | 'vendor' },
): Promise<{ lane: string; view: BreakerView }[]> {
  const names = per === 'vendor' ? [ALL_LANES] : [...new Set([ALL_LANES, ...lanes])]
  const views = await store.sync(names.map((lane) => ({ guard, lane, spec, renew: [] })))
  const all = names.map((lane, index) => ({ lane, view: views[index] as BreakerView }))
  if (per === 'vendor') return all
  const [allLanes, ...each] = all
  const allIsolatedUntilUs = allLanes?.view.isolatedUntilUs ?? 0
  return each.map(({ lane, view }) => {
    const isolatedUntilUs = Math.max(view.isolatedUntilUs, allIsolatedUntilUs)
    return { lane, view: { ...view, isolatedUntilUs } }
  })
}
