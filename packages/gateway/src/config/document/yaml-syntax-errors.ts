/** Syntax errors of the YAML parser, reworded where its message would quote the text, which may be a secret. */
import type { YAMLError } from 'yaml'
import type { ConfigProblem } from '../config-error.js'
import type { YamlScalar } from './yaml-scalar.js'

/** A line with a name in brackets, and below it one with an equals sign. */
const TOML = /^\[[\w."-]+\]\s*\r?\n(\s*#.*\r?\n|\s*\r?\n)*[\w."-]+\s*=/m

/** Only the first error is reported, because later ones usually follow from it. `text` is looked at, and never quoted. */
export function syntaxMistakes(
  errors: readonly YAMLError[],
  scalars: readonly YamlScalar[],
  text: string,
): ConfigProblem[] {
  const [first] = errors
  if (first === undefined) return []
  if (TOML.test(text)) {
    const message = `is not YAML but TOML: write 'name: value', and names inside of others indented`
    return [{ path: '', message, at: first.pos[0] }]
  }
  const at = isUnclosed(first) ? beginningOf(first.pos[0], scalars) : first.pos[0]
  return [{ path: '', message: `is not YAML: ${explain(first, text)}`, at }]
}

/** The parser misses it at the end of the file, but the mistake is at its beginning. */
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
    if (!lineAt(text, pos[0]).includes(':')) return 'the line has no colon: write name: value'
    return 'the line below is indented further: it has to begin where the names beside it do'
  }
  if (code === 'BLOCK_AS_IMPLICIT_KEY') return 'a value with ": " in it needs quotes'
  if (message.startsWith('All mapping items must start')) {
    const before = lineAt(text, lineStart(text, pos[0]) - 1)
    return before.replace(/\s#.*/, '').includes(':')
      ? 'names beside each other have to begin in the same column'
      : 'the line above has no colon: write name: value'
  }
  // Text after a colon is part of the value.
  const [problem = ''] = message.split(/(?<=\S): /)
  return problem.charAt(0).toLowerCase() + problem.slice(1)
}

/** The next line is indented deeper than the one at this offset. */
function isContinued(text: string, at: number): boolean {
  const line = lineAt(text, at)
  const [, next = ''] = text.slice(lineStart(text, at)).split('\n', 2)
  return indentOf(next) > indentOf(line)
}

function lineAt(text: string, at: number): string {
  const [line = ''] = text.slice(lineStart(text, at)).split('\n', 1)
  return line
}

function lineStart(text: string, at: number): number {
  return text.lastIndexOf('\n', at - 1) + 1
}

function indentOf(line: string): number {
  return line.search(/\S|$/)
}
