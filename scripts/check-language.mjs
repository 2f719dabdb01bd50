// npm run check -- language: phrases that the project does not use, in every tracked text file, and words that the
// glossary replaces, in names of files and in declared names. See "Write English" in CONTRIBUTING.md.

import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import ts from 'typescript'
import { FORBIDDEN_PHRASES } from './forbidden-phrases.mjs'
import { isMain, root } from './run-command.mjs'

/**
 * Words that the glossary replaces, as whole words of a name. Its other words usually mean something else in code
 * and are left to the review: `entry` of a map, `line` and `words` of a text, `place` in a document, `try` as a verb.
 */
const OLD_WORDS = {
  admission: 'permit',
  aim: 'target',
  away: 'unreachable',
  dependency: 'downstream or vendor',
  desk: 'the name of what it does',
  gate: 'stage',
  gatekeeper: 'lane block',
  gone: 'unreachable, expired or removed',
  machinery: 'a narrower name',
  news: 'report or change',
  ride: 'round trip',
  room: 'queue or headroom',
  tries: 'attempts',
  trip: 'round trip',
  wish: 'call or request',
}

/** Names that may contain an old word. `file` is an expression for the beginning of a path. */
const ALLOWED_NAMES = [
  { file: 'packages/', name: /round.?trip/i, reason: 'the word of the glossary' },
  {
    file: 'packages/spillway/src/(shared/circuit-breaker|store/breaker|internal|testing)/',
    name: /trip/i,
    reason: 'a breaker trips',
  },
  {
    file: 'packages/dashboard/src/feed/',
    name: /^(tripCause|MOST_TRIPS)$/,
    reason: 'as above',
  },
  {
    file: 'packages/spillway/src/degrade/',
    name: /dependency/i,
    reason:
      'public name; a feature may depend on something that is not a downstream, such as a database',
  },
  {
    file: 'packages/spillway/src/http/',
    name: /gate/i,
    reason: 'the entrance of a server, which is not a stage of a guard',
  },
  {
    file: 'packages/spillway/src/guard/pipeline/stages.ts',
    name: /^room$/,
    reason: 'the old name of a stage, which is refused with a hint',
  },
]

/** Lines that may contain a phrase. */
const ALLOWED_LINES = [
  {
    file: 'packages/dashboard/test/server/access.test.ts',
    text: /any(body)/,
    reason: 'the old value of an option, which is refused with a hint',
  },
  {
    file: 'packages/spillway/src/http/operator-access.ts',
    text: /any(body): 'public'/,
    reason: 'as above',
  },
]

const TEXT_FILES =
  /\.(md|ts|tsx|mts|mjs|cjs|js|json|jsonc|lua|yaml|yml|css|html|txt)$|(^|\/)(Dockerfile|run)$/
const GENERATED = /(^|\/)package-lock\.json$/
const SOURCE = /^packages\/[^/]+\/(page\/)?src\/.*\.tsx?$/

/** Problems of one file, each with its line. */
export function findPhrases(file, text) {
  const problems = []
  for (const [index, line] of text.split('\n').entries()) {
    const found = FORBIDDEN_PHRASES.exec(line)
    if (found === null) continue
    if (ALLOWED_LINES.some((each) => each.file === file && each.text.test(line))) continue
    problems.push(`${file}:${index + 1}: "${found[0]}" in: ${line.trim().slice(0, 120)}`)
  }
  return problems
}

/** Problems in the name of a file and in the names it declares. */
export function findOldWords(file, text) {
  return [basename(file).replace(/\..*$/, ''), ...declaredNames(file, text)].flatMap((name) => {
    if (
      ALLOWED_NAMES.some((each) => new RegExp(`^${each.file}`).test(file) && each.name.test(name))
    )
      return []
    return wordsOf(name)
      .filter((word) => Object.hasOwn(OLD_WORDS, word))
      .map((word) => `${file}: "${word}" in the name ${name}; use "${OLD_WORDS[word]}"`)
  })
}

/** Names of variables, parameters, functions, types and members that a file declares, each once. */
function declaredNames(file, text) {
  const names = new Set()
  const visit = (node) => {
    const { name } = node
    const isUse = ts.isPropertyAccessExpression(node) || ts.isMetaProperty(node)
    if (!isUse && name !== undefined && (ts.isIdentifier(name) || ts.isPrivateIdentifier(name)))
      names.add(name.text.replace('#', ''))
    ts.forEachChild(node, visit)
  }
  visit(ts.createSourceFile(file, text, ts.ScriptTarget.Latest))
  return names
}

/** Lower-case words of a name, without the plural of the old words. */
function wordsOf(name) {
  return name
    .replace(/([a-z0-9])([A-Z])/g, '$1-$2')
    .toLowerCase()
    .split(/[-_]/)
    .map((word) =>
      Object.hasOwn(OLD_WORDS, word.replace(/s$/, '')) ? word.replace(/s$/, '') : word,
    )
}

if (isMain(import.meta.url)) {
  const files = execFileSync('git', ['ls-files', '-z'], { cwd: root, encoding: 'utf8' })
    .split('\0')
    .filter((file) => TEXT_FILES.test(file) && !GENERATED.test(file))
  const problems = files.flatMap((file) => {
    const text = readFileSync(join(root, file), 'utf8')
    return [...findPhrases(file, text), ...(SOURCE.test(file) ? findOldWords(file, text) : [])]
  })
  for (const problem of problems) process.stdout.write(`${problem}\n`)
  if (problems.length > 0) {
    process.stdout.write(
      `${problems.length} ${problems.length === 1 ? 'phrase or name' : 'phrases or names'} to change; see "Write English" in CONTRIBUTING.md\n`,
    )
    process.exitCode = 1
  }
}
