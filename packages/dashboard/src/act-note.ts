/**
 * Reads an audit line from another pod. Its text is untrusted, so it is cut to a limited length.
 */
import { shown } from './shown.js'
import type { Act, ActNote } from './wire/acts.js'

const ACTS: ReadonlySet<unknown> = new Set<Act['act']>([
  'isolate',
  'release',
  'reset',
  'pause',
  'limit',
  'drain',
  'replay',
  'demo',
])

/** Undefined if the text is no audit line. */
export function readActNote(text: string): ActNote | undefined {
  let note: Partial<Record<keyof ActNote, unknown>>
  try {
    note = JSON.parse(text) as typeof note
  } catch {
    return undefined
  }
  if (typeof note !== 'object' || note === null || !ACTS.has(note.act)) return undefined
  const textOf = (value: unknown) => (typeof value === 'string' ? shown(value) : '')
  return {
    at: typeof note.at === 'number' && Number.isFinite(note.at) ? note.at : 0,
    pod: textOf(note.pod),
    act: note.act as Act['act'],
    on: textOf(note.on),
    did: textOf(note.did),
    ok: note.ok === true,
    by: textOf(note.by),
  }
}
