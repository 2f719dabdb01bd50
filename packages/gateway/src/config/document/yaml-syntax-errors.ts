/** Syntax errors of the YAML parser, reworded where its message would quote the text, which may be a secret. */
import type { YAMLError } from 'yaml'
import type { ConfigProblem } from '../config-error.js'
import type { YamlScalar } from './yaml-scalar.js'

/** Only the first error is reported, because later ones usually follow from it. */
const MOST = 20
/** A line with a name in brackets, and below it one with an equals sign. */
const TOML = /^\[[\w."-]+\]\s*\r?\n(\s*#.*\r?\n|\s*\r?\n)*[\w."-]+\s*=/m

/** `text` is looked at, and never quoted. */
export function syntaxMistakes(
  errors: readonly YAMLError[],
  scalars: readonly YamlScalar[],
  text: string,
): ConfigProblem[] {
  const [first] = errors
  if (first !== undefined && TOML.test(text)) {
    const message = `is not YAML but TOML: write 'name: value', and names inside of others indented`
    return [{ path: '', message, at: first.pos[0] }]
  }
  const seen = new Set<string>()
  const mistakes = errors.flatMap((error): ConfigProblem[] => {
    const message = `is not YAML: ${explain(error, text)}`
    const at = isUnclosed(error) ? beginningOf(error.pos[0], scalars) : error.pos[0]
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

function beginningOf(end: number, scalars: readonly YamlScalar[]): number {
  return scalars.findLast((word) => word.end === end)?.start ?? end
}

function explain(error: YAMLError, text: string): string {
  const { code, message, pos } = error
  if (text.startsWith('//', pos[0])) return 'comments begin with #, not with //'
  if (code === 'TAB_AS_INDENT') return 'tabs cannot indent: use spaces'
  if (isUnclosed(error)) return 'a quote that is never closed'
  if (/^Flow (sequence|map)/.test(message)) return 'a [ or { that is never closed'
  if (code === 'NON_STRING_KEY') return 'a name must be text'
  if (code === 'TAG_RESOLVE_FAILED') return 'a tag (!) has no meaning here'
  if (code === 'MULTIPLE_DOCS') return 'a second document (---) has no meaning here'
  // A multi-line value with a colon in a later line: that line was probably meant as a key.
  if (
    code === 'MULTILINE_IMPLICIT_KEY' ||
    (code === 'BLOCK_AS_IMPLICIT_KEY' && isContinued(text, pos[0]))
  ) {
    return 'the line below is indented further: it has to begin where the names beside it do'
  }
  if (code === 'BLOCK_AS_IMPLICIT_KEY') return 'a value with ": " in it needs quotes'
  // Text after a colon is part of the value.
  const [problem = ''] = message.split(/(?<=\S): /)
  return problem.charAt(0).toLowerCase() + problem.slice(1)
}

/** The next line is indented deeper than the one at this offset. */
function isContinued(text: string, at: number): boolean {
  const lineStart = text.lastIndexOf('\n', at - 1) + 1
  const [line = '', next = ''] = text.slice(lineStart).split('\n')
  return indentOf(next) > indentOf(line)
}

function indentOf(line: string): number {
  return line.search(/\S|$/)
}
