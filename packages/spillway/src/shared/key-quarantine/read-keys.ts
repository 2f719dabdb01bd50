/** The quarantined keys of a vendor, as the store has them, for reports on the fleet and for operators. */
import type { BreakerView, Store } from '../../store/port.js'
import { keysGroup } from './key-id.js'
import { type KeyNote, readNotes } from './key-notes.js'
import { KEY_SPEC } from './policy.js'

/** A quarantined key, and the state of its breaker. */
export interface QuarantinedKey extends KeyNote {
  readonly view: BreakerView
}

export async function readQuarantined(store: Store, vendor: string): Promise<QuarantinedKey[]> {
  const notes = await readNotes(store, vendor)
  if (notes.length === 0) return []
  const guard = keysGroup(vendor)
  const views = await store.breakers.sync(
    notes.map(({ id: lane }) => ({ guard, lane, spec: KEY_SPEC, renew: [] })),
  )
  return notes.flatMap((note, index) => {
    const view = views[index]
    const isQuarantined = view !== undefined && (view.kind !== 0 || view.isolatedUntilUs > 0)
    return isQuarantined ? [{ ...note, view }] : []
  })
}
