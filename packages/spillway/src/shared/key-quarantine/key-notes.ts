/**
 * Reasons of quarantines, for operators, because a breaker cannot store a reason. Each note is stored as a pod with
 * one heartbeat, so it expires. Decisions never depend on it.
 */
import type { Store } from '../../store/port.js'
import { keyNameIn, keysGroup } from './key-id.js'

/** Why a key is quarantined. */
export type QuarantineReason = 'quota-exhausted' | 'invalid-key' | 'operator'

/** A key that is quarantined, or was until a moment ago. */
export interface KeyNote {
  /** Name, or name and hash, of the key; also the name of its lane. */
  readonly id: string
  /** Name of the key. */
  readonly key: string
  readonly reason: QuarantineReason
}

const REASONS: readonly unknown[] = [
  'quota-exhausted',
  'invalid-key',
  'operator',
] satisfies QuarantineReason[]

/** A quarantined key without traffic is not probed. Its note is kept for this long after the reset time. */
const KEPT_AFTER_US = 86_400_000_000

export async function postNote(
  store: Store,
  vendor: string,
  { id, reason, forUs }: { id: string; reason: QuarantineReason; forUs: number },
): Promise<void> {
  const lifeUs = forUs + KEPT_AFTER_US
  const snapshot = JSON.stringify({ reason })
  await store.pods.beat({ group: keysGroup(vendor), pod: id, lifeUs, snapshot })
}

export async function dropNote(store: Store, vendor: string, id: string): Promise<void> {
  await store.pods.leave({ group: keysGroup(vendor), pod: id })
}

export async function readNotes(store: Store, vendor: string): Promise<KeyNote[]> {
  const records = await store.pods.list({ group: keysGroup(vendor) })
  return records.flatMap(({ pod: id, snapshot }) => {
    const reason = reasonIn(snapshot)
    return reason === undefined ? [] : [{ id, key: keyNameIn(id), reason }]
  })
}

function reasonIn(snapshot: string): QuarantineReason | undefined {
  try {
    const { reason } = JSON.parse(snapshot) as { reason?: unknown }
    return REASONS.includes(reason) ? (reason as QuarantineReason) : undefined
  } catch {
    // Another release wrote it.
    return undefined
  }
}
