/** Replaces top-level fields of a JSON body and leaves every other byte as the client sent it. */
import type { ByteEdit, ByteList } from './byte-list.js'
import type { JsonObject } from './json-object.js'

export function withFields(
  bytes: ByteList,
  { fields, start, isEmpty }: JsonObject,
  replacements: Readonly<Record<string, unknown>>,
): ByteList {
  const edits: ByteEdit[] = []
  const added: string[] = []
  for (const [name, value] of Object.entries(replacements)) {
    const text = JSON.stringify(value)
    const known = fields.get(name)
    if (known === undefined) added.push(`${JSON.stringify(name)}:${text}`)
    else edits.push({ start: known.start, end: known.end, text })
  }
  if (added.length > 0) {
    const text = added.join(',') + (isEmpty ? '' : ',')
    edits.push({ start, end: start, text })
  }
  return bytes.edited(edits.sort((one, other) => one.start - other.start))
}
