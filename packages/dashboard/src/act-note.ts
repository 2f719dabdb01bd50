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

/** Undefined if it is none. */
export function readActNote(text: string): ActNote | undefined {
  let said: Partial<Record<keyof ActNote, unknown>>
  try {
    said = JSON.parse(text) as typeof said
  } catch {
    return undefined
  }
  if (typeof said !== 'object' || said === null || !ACTS.has(said.act)) return undefined
  const word = (value: unknown) => (typeof value === 'string' ? shown(value) : '')
  return {
    at: typeof said.at === 'number' && Number.isFinite(said.at) ? said.at : 0,
    pod: word(said.pod),
    act: said.act as Act['act'],
    on: word(said.on),
    did: word(said.did),
    ok: said.ok === true,
    by: word(said.by),
  }
}
