// Test names are full sentences that make sense without their `describe`. This test finds names that
// continue a heading ("is refused after …") and the phrases that the style guide forbids.

import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { describe, expect, it } from 'vitest'
import { FORBIDDEN_PHRASES } from './forbidden-phrases.mjs'

const ROOT = fileURLToPath(new URL('..', import.meta.url))
const FOLDERS = ['bench', 'e2e', 'examples', 'packages', 'scripts']
const IGNORED = new Set(['node_modules', 'dist'])

/** A name that starts with one of these words has no subject. Words that can start a sentence are missing. */
const FRAGMENT = new RegExp(
  `^(${[
    'is|are|was|were|be|does|do|did|has|have|had|can|cannot|could|may|might|must|shall|should|will|would',
    'that|which|who|whose|whom|but|and|or|nor|so|than|of|to|by|not|never|always|still|also',
    'accepts|adds|allows|becomes|begins|cancels|closes|comes|creates|emits|fails|finds|forgets|frees|gets',
    'gives|goes|holds|ignores|keeps|knows|lasts|leaves|lets|makes|opens|reaches|rejects|refuses|says|sends',
    'skips|stays|survives|takes|tells|throws|writes',
    // These can also be plural nouns.
    '(counts|drops|ends|releases|returns|runs|shows|starts|stops|uses|waits) (a|an|the|its|all|no|nothing)',
  ].join('|')}) `,
)

/** @returns {string | undefined} What is wrong with a test name. */
function problemOf(name) {
  if (/^[%$]\S*$/.test(name)) return 'is only a placeholder'
  if (name.split(' ').length < 3) return 'is not a sentence'
  const [fragment] = FRAGMENT.exec(name) ?? []
  if (fragment !== undefined) return `starts with "${fragment.trim()}" and has no subject`
  const [phrase] = FORBIDDEN_PHRASES.exec(name) ?? []
  return phrase === undefined ? undefined : `contains "${phrase}"`
}

/** The names of the tests in a file: of `it('…')` and of `it.each(…)('…')`, with their lines. */
function testNames(text) {
  const names = []
  for (const { index } of text.matchAll(/(?<=^[ \t]*)(it|test)[.(]/gm)) {
    const start = nameStart(text, index)
    const [, quote, name] = /^\s*(['"`])((?:\\.|(?!\1).)*)\1\s*,/s.exec(text.slice(start)) ?? []
    if (quote !== undefined) names.push({ name, line: text.slice(0, start).split('\n').length })
  }
  return names
}

/** Position of the arguments of the last call in `it.each(table)(name, …)` or `it(name, …)`. */
function nameStart(text, index) {
  const call = /(?:it|test)(?:\.(\w+))*(?:<[^(]*>)?\(/y
  call.lastIndex = index
  const [, method] = call.exec(text) ?? []
  if (!['each', 'for', 'skipIf', 'runIf'].includes(method)) return call.lastIndex
  // The table ends before the first `)(` that is followed by a string.
  const end = /\)\(\s*(?=['"`])/g
  end.lastIndex = call.lastIndex
  return end.exec(text) === null ? text.length : end.lastIndex
}

function sourceFiles(folder) {
  return readdirSync(join(ROOT, folder), { withFileTypes: true }).flatMap((entry) => {
    const path = `${folder}/${entry.name}`
    if (entry.isDirectory()) return IGNORED.has(entry.name) ? [] : sourceFiles(path)
    return /\.(ts|mjs)$/.test(entry.name) ? [path] : []
  })
}

/** Claim files define tests for several stores and are not named `.test.ts`. */
const importsVitest = (text) => /from 'vitest'/.test(text)

describe('test names', () => {
  it('every test name in the repository is a sentence with a subject and no forbidden phrase', () => {
    const problems = []
    let count = 0
    for (const file of FOLDERS.flatMap(sourceFiles)) {
      const text = readFileSync(join(ROOT, file), 'utf8')
      if (!importsVitest(text)) continue
      for (const { name, line } of testNames(text)) {
        count++
        const problem = problemOf(name)
        if (problem !== undefined) problems.push(`${file}:${line} '${name}' ${problem}`)
      }
    }
    expect(problems).toEqual([])
    // A change of the test syntax must not make this test blind.
    expect(count).toBeGreaterThan(2_000)
  })

  it.each([
    'is refused after a timeout',
    'of any size arrives whole',
    'that is reset does not end the gateway',
    'stays closed after a cold start',
    '%s',
    'says why',
    `a call that ${'no'}body wants is dropped`,
  ])('the name "%s" is reported', (name) => {
    expect(problemOf(name)).toBeDefined()
  })

  it.each([
    'half-open breaker grants at most 3 probes across 8 pods',
    'with a token, actions from this machine need it as well',
    '%s is refused on every route',
    'calls are not retried once the retry budget is spent',
  ])('the name "%s" is accepted', (name) => {
    expect(problemOf(name)).toBeUndefined()
  })

  it('testNames() finds plain names and names behind a table', () => {
    const text = ["it('one', () => {})", 'it.each([', "  ['x', f('y')],", "])('two %s', () => {})"]
    expect(testNames(text.join('\n'))).toEqual([
      { name: 'one', line: 1 },
      { name: 'two %s', line: 4 },
    ])
  })
})
