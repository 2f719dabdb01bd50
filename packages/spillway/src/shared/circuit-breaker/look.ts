/** How breakers stand by the store's own word, whether or not anybody here has used them. */
import type { BreakerSpec } from '../../store/breaker-spec.js'
import type { BreakerStore, BreakerView } from '../../store/port.js'
import { ALL_LANES } from '../default-lane.js'

/** What isolates all lanes isolates each of them. In one trip. */
export async function lookAt(
  store: BreakerStore,
  guard: string,
  lanes: readonly string[],
  { spec, per }: { spec: BreakerSpec; per: 'lane' | 'vendor' },
): Promise<{ lane: string; view: BreakerView }[]> {
  const names = per === 'vendor' ? [ALL_LANES] : [...new Set([ALL_LANES, ...lanes])]
  const views = await store.sync(names.map((lane) => ({ guard, lane, spec, renew: [] })))
  const all = names.map((lane, index) => ({ lane, view: views[index] as BreakerView }))
  if (per === 'vendor') return all
  const [whole, ...each] = all
  const wholeUs = whole?.view.isolatedUntilUs ?? 0
  return each.map(({ lane, view }) => {
    const isolatedUntilUs = Math.max(view.isolatedUntilUs, wholeUs)
    return { lane, view: { ...view, isolatedUntilUs } }
  })
}
