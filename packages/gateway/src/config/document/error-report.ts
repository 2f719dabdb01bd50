/** Formats mistakes for people: position, message, and the line with a marker below it. */

import type { ConfigProblem } from '../config-error.js'
import { ConfigError, type ConfigMistake } from '../config-error.js'
import {
  createRedaction,
  MASK,
  maskNamed,
  type Redaction,
  redactCode,
  redactComment,
} from './redact.js'
import type { WrittenDocument } from './yaml-document.js'

/** Problems shown in one report. */
const MOST_REPORTED = 100

export function configError(
  file: string,
  text: string,
  written: WrittenDocument,
  mistakes: readonly ConfigProblem[],
): ConfigError {
  const redaction = createRedaction(
    written.scalars,
    mistakes.filter(isAboutKey).map(({ path }) => path),
  )
  const isYaml = written.syntax.length === 0
  const placed = mistakes
    .map((mistake) => ({ mistake, offset: offsetOf(mistake, written) }))
    .toSorted((a, b) => (a.offset ?? -1) - (b.offset ?? -1))
    .map(({ mistake, offset }) => place(mistake, offset, written, redaction))
  const reports = placed.map((each) => {
    const head = `${whereIs(file, each)}  ${each.path && `${each.path}: `}${each.message}`
    if (each.line === undefined || each.column === undefined) return head
    return `${head}\n${quote(text, each.line, each.column, redaction, isYaml)}`
  })
  const different = [...new Set(reports)]
  const more = different.length - MOST_REPORTED
  const last = more > 0 ? [`… and ${more} more`] : []
  return new ConfigError([...different.slice(0, MOST_REPORTED), ...last].join('\n'), placed)
}

/** Phrases of the checks that are shared with the library. */
function isAboutKey({ message }: Pick<ConfigProblem, 'message'>): boolean {
  return message.startsWith('unknown option') || message.startsWith('was renamed')
}

function offsetOf(
  { path, message, at }: ConfigProblem,
  { places }: WrittenDocument,
): number | undefined {
  if (at === 'outside') return undefined
  if (typeof at === 'number') return at
  const own = places.get(path)
  if (own !== undefined) {
    return at === 'key' || isAboutKey({ message }) ? (own.key ?? own.value) : own.value
  }
  // A missing option is reported at the nearest enclosing option.
  for (let around = path; around !== ''; ) {
    around = around.slice(0, Math.max(around.lastIndexOf('.'), around.lastIndexOf('['), 0))
    const place = places.get(around)
    if (place !== undefined) return around === '' ? 0 : (place.key ?? place.value)
  }
  return 0
}

function place(
  { path, message }: ConfigProblem,
  offset: number | undefined,
  { lines }: WrittenDocument,
  redaction: Redaction,
): ConfigMistake {
  const { line, col } =
    offset === undefined ? { line: undefined, col: undefined } : lines.linePos(offset)
  return {
    path: printable(redaction.clean(path.replace(/^\./, ''))),
    message: printable(redaction.clean(message)),
    // An empty file has no first line.
    line: line === 0 ? 1 : line,
    column: line === 0 ? 1 : col,
  }
}

function whereIs(file: string, { line, column }: ConfigMistake): string {
  return line === undefined ? file : `${file}:${line}:${column}`
}

/** The line, and a mark below the column. */
function quote(
  text: string,
  line: number,
  column: number,
  redaction: Redaction,
  isYaml: boolean,
): string {
  const lines = text.split('\n')
  const start = lines.slice(0, line - 1).reduce((sum, each) => sum + each.length + 1, 0)
  const source = (lines[line - 1] ?? '').replace(/\r$/, '')
  const caret = Math.min(column - 1, source.length)
  const shown = masked(source, start, redaction, isYaml)
  // Column of the marker after the text before it was masked.
  const mark = Math.min(
    masked(source.slice(0, caret), start, redaction, isYaml).length,
    shown.length,
  )
  const [before, after] = cut(shown.slice(0, mark), shown.slice(mark))
  const number = String(line).padStart(5)
  const indent = before.replace(/[^\t]/g, ' ')
  return `${number} | ${before}${after}\n${' '.repeat(number.length)} | ${indent}^`
}

/** The line from its start, with secrets masked. */
function masked(
  source: string,
  lineStart: number,
  { spans, clean }: Redaction,
  isYaml: boolean,
): string {
  let shown = ''
  let done = 0
  for (const span of spans) {
    const start = Math.max(span.start - lineStart, done)
    const end = Math.min(span.end - lineStart, source.length)
    if (start >= end) continue
    shown += source.slice(done, start) + MASK
    done = end
  }
  shown += source.slice(done)
  return printable(clean(redactRest(shown, isYaml)))
}

/** Values of valid YAML are masked by their spans. What is left are comments. */
function redactRest(shown: string, isYaml: boolean): string {
  // A # may be part of a secret whose quote is not closed, so secrets with a name come first.
  const line = isYaml ? shown : maskNamed(shown)
  const start = /(^|\s)#/.exec(line)?.index ?? line.length
  const code = line.slice(0, start)
  return (isYaml ? code : redactCode(code)) + redactComment(line.slice(start))
}

/** The lines of some files have no end. */
const MOST_BEFORE = 80
const MOST_AFTER = 80

function cut(before: string, after: string): [string, string] {
  return [
    before.length > MOST_BEFORE ? `…${before.slice(-MOST_BEFORE)}` : before,
    after.length > MOST_AFTER ? `${after.slice(0, MOST_AFTER)}…` : after,
  ]
}

/** Replaces control characters except tabs, because a terminal would execute them. */
function printable(text: string): string {
  return text.replace(/(?!\t)\p{Cc}/gu, '�')
}
