// npm run check -- language: phrases that the project does not use, in every tracked text file, and words that the
// glossary replaces, in names of files and exported identifiers. See "Write English" in CONTRIBUTING.md.

import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { isMain, root } from './run-command.mjs'

/** Vague phrases: calls described as people, relative clauses instead of nouns, numbers without their option. */
const PHRASES = new RegExp(
  [
    'whoever|somebody|nobody|anybody|everybody|so many|so long',
    '(is|are|was|were|be) told|tells? of|hears? of|heard of',
    "(its|their|own|last|vendor's) word|in vain|go(es)? by|stands? in the way|those who",
    'who (waits?|asks?|wants?|comes?|leaves?|gets?|reads?)|the same\\.',
  ].join('|'),
  'i',
)

/** Old words for things that the glossary names otherwise, as whole words of a file name or an exported identifier. */
const OLD_WORDS = {
  wish: 'call',
  room: 'queue',
  aim: 'target',
  admission: 'permit',
  ride: 'round trip',
  gatekeeper: 'lane block',
  machinery: 'a narrower name',
}

/** Lines that may match, each with its reason. */
const ALLOWED = [
  {
    file: 'scripts/check-language.mjs',
    text: /whoever|told|word|who|anybody|in vain/,
    reason: 'defines the phrases',
  },
  {
    file: 'scripts/test-names.test.mjs',
    text: /whoever|nobody/,
    reason: 'the same phrases in test names',
  },
  {
    file: 'packages/dashboard/test/why.test.ts',
    text: /whoever/,
    reason: 'the same phrases on the page',
  },
  {
    file: 'packages/dashboard/test/server/access.test.ts',
    text: /anybody/,
    reason: 'the old name of an option, which is refused with a hint',
  },
  {
    file: 'packages/spillway/src/http/operator-access.ts',
    text: /anybody: 'public'/,
    reason: 'as above',
  },
  {
    file: 'scripts/check-language.test.mjs',
    text: /in vain|anybody/,
    reason: 'tests of this check',
  },
]

const TEXT_FILES =
  /\.(md|ts|tsx|mts|mjs|cjs|js|json|jsonc|lua|yaml|yml|css|html|txt)$|(^|\/)(Dockerfile|run)$/
const GENERATED = /(^|\/)package-lock\.json$/
const SOURCE = /^packages\/[^/]+\/src\/.*\.ts$/
const EXPORTED =
  /^export (?:abstract )?(?:class|interface|type|function|const|async function) (\w+)/

/** Problems of one file, such as `a.md:3: "in vain"`. */
export function findPhrases(file, text) {
  const problems = []
  for (const [index, line] of text.split('\n').entries()) {
    const found = PHRASES.exec(line)
    if (found === null) continue
    if (ALLOWED.some((each) => each.file === file && each.text.test(line))) continue
    problems.push(`${file}:${index + 1}: "${found[0]}" in: ${line.trim().slice(0, 120)}`)
  }
  return problems
}

/** Problems in the name of a file and in the names it exports. */
export function findOldWords(file, text) {
  const names = [basename(file).replace(/\..*$/, '')]
  for (const line of text.split('\n')) {
    const name = EXPORTED.exec(line)?.[1]
    if (name !== undefined) names.push(name)
  }
  return names.flatMap((name) =>
    wordsOf(name)
      .filter((word) => Object.hasOwn(OLD_WORDS, word))
      .map((word) => `${file}: "${word}" in the name ${name}; use "${OLD_WORDS[word]}"`),
  )
}

function wordsOf(name) {
  return name
    .replace(/([a-z0-9])([A-Z])/g, '$1-$2')
    .toLowerCase()
    .split(/[-_]/)
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
      `${problems.length} ${problems.length === 1 ? 'phrase' : 'phrases'} to rewrite; see "Write English" in CONTRIBUTING.md\n`,
    )
    process.exitCode = 1
  }
}
