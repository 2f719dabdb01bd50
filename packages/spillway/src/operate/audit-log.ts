/**
 * The audit log: actions of operators with identity and result, kept in the store for weeks. Entries are only added. Each is
 * stored as a pod with one heartbeat, so it expires by itself. It contains no secrets: actions have none.
 */
import { randomUUID } from 'node:crypto'
import type { Store } from '../store/port.js'

/** An action of an operator, or an attempt. */
export interface AuditEntry {
  /** Id of the entry, unique in the log. */
  id: string
  /** When it was recorded, in milliseconds since 1970. Range: from 0. */
  at: number
  /** What was done. */
  action: string
  /** The guard it applies to; empty for actions on a gateway. */
  guard: string
  /** Who did it: a name, or the user and host of the command. */
  by: string
  /** The address it came from. Default: unknown. */
  from?: string
  /** The lane it applies to. Default: all lanes. */
  lane?: string
  /** Name of the API key that was quarantined or released. Default: none. */
  key?: string
  /** For how many milliseconds. Range: from 0 ms. Default: it has no end. */
  forMs?: number
  /** The unit of the limit that was set. Default: none. */
  unit?: string
  /** The new limit, in its unit. Range: from 0. Default: none was set. */
  limit?: number
  /** `refused`: the request was invalid. */
  result: 'done' | 'refused'
  /** What was done, or why it was refused. */
  message: string
}

/** What is recorded. */
export type AuditedAction = Omit<AuditEntry, 'id' | 'at'>

const GROUP = 'operators:audit'
/** Further ones replace the oldest. */
export const MOST_ENTRIES = 1_000
const LONGEST = 500

/** Resolves when it is stored. A failure does not affect the action, which is also in the log. */
export async function addToAudit(
  store: Store,
  action: { readonly [K in keyof AuditedAction]: unknown },
  keepMs: number,
): Promise<void> {
  const snapshot = JSON.stringify(cleaned(action))
  try {
    const lifeUs = keepMs * 1_000
    const { live } = await store.pods.beat({ group: GROUP, pod: randomUUID(), lifeUs, snapshot })
    if (live <= MOST_ENTRIES) return
    const entries = await store.pods.list({ group: GROUP })
    const oldest = entries.sort((a, b) => b.ageUs - a.ageUs).slice(0, live - MOST_ENTRIES)
    for (const { pod } of oldest) await store.pods.leave({ group: GROUP, pod })
  } catch {
    // The store is unreachable. The event of the action is in the log of this process.
  }
}

/** The oldest first. `wallMs`: the time of day. */
export async function readAudit(
  store: Store,
  wallMs: number,
  sinceMs: number,
): Promise<AuditEntry[]> {
  const records = await store.pods.list({ group: GROUP })
  return records
    .filter(({ ageUs }) => ageUs <= sinceMs * 1_000)
    .sort((a, b) => b.ageUs - a.ageUs)
    .flatMap(({ pod: id, snapshot, ageUs }): AuditEntry[] => {
      const action = parsed(snapshot)
      const at = Math.round(wallMs - ageUs / 1_000)
      return action === undefined ? [] : [{ id, at, ...action }]
    })
}

function parsed(snapshot: string): AuditedAction | undefined {
  try {
    return cleaned(JSON.parse(snapshot))
  } catch {
    // Another version wrote it in another format.
    return undefined
  }
}

/** Known fields of the right types, texts cut to 500 characters, because callers may choose their content. */
function cleaned(action: { readonly [K in keyof AuditedAction]?: unknown }): AuditedAction {
  const text = (value: unknown) => (typeof value === 'string' ? value.slice(0, LONGEST) : '')
  const texts = (['from', 'lane', 'key', 'unit'] as const).flatMap((name) =>
    typeof action[name] === 'string' ? [[name, text(action[name])]] : [],
  )
  const numbers = (['forMs', 'limit'] as const).flatMap((name) =>
    typeof action[name] === 'number' ? [[name, action[name]]] : [],
  )
  return {
    action: text(action.action),
    guard: text(action.guard),
    by: text(action.by),
    ...Object.fromEntries(texts),
    ...Object.fromEntries(numbers),
    result: action.result === 'done' ? 'done' : 'refused',
    message: text(action.message),
  }
}
