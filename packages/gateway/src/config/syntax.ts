/** What the YAML parser complains of, in our words where its own would quote the text: it may be a secret. */
import type { YAMLError } from 'yaml'
import type { Mistake } from './mistake.js'
import type { Word } from './word.js'

/** One slip can upset everything after it. */
const MOST = 20

export function syntaxMistakes(errors: readonly YAMLError[], words: readonly Word[]): Mistake[] {
  const seen = new Set<string>()
  const mistakes = errors.flatMap((error): Mistake[] => {
    const message = `is not YAML: ${explain(error)}`
    const at = isUnclosed(error) ? beginningOf(error.pos[0], words) : error.pos[0]
    const same = `${at} ${message}`
    if (seen.has(same)) return []
    seen.add(same)
    return [{ path: '', message, at }]
  })
  return mistakes.slice(0, MOST)
}

/** It is missed at the end of the file, when it is the beginning that has to be looked at. */
function isUnclosed({ code, message }: YAMLError): boolean {
  return code === 'MISSING_CHAR' && message.startsWith('Missing closing')
}

function beginningOf(end: number, words: readonly Word[]): number {
  return words.findLast((word) => word.end === end)?.start ?? end
}

function explain(error: YAMLError): string {
  const { code, message } = error
  if (isUnclosed(error)) return 'a quote that is never closed'
  if (/^Flow (sequence|map)/.test(message)) return 'a [ or { that is never closed'
  if (code === 'NON_STRING_KEY') return 'a name must be text'
  if (code === 'TAG_RESOLVE_FAILED') return 'a tag (!) has no meaning here'
  if (code === 'MULTIPLE_DOCS') return 'a second document (---) has no meaning here'
  if (code === 'BLOCK_AS_IMPLICIT_KEY') return 'a value with ": " in it needs quotes'
  // What comes after a colon is a piece of the text.
  const [said = ''] = message.split(/(?<=\S): /)
  return said.charAt(0).toLowerCase() + said.slice(1)
}
