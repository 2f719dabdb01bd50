// Checks that every promise in SECURITY.md names tests, and that those tests exist and are not skipped.

import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { root } from './run-command.mjs'

const HEADER = '| Promise | Tests |'
/** `[title](path)`; a title may contain pairs of square brackets. */
const REFERENCE = /\[((?:[^[\]]|\[[^\]]*\])+)\]\(([^)\s]+)\)/g
const SKIPPED_TESTS = /\b(?:describe|it|test)\.(?:only|skip|todo)\b/
/** Claims that several test files share are in folders of this name. */
const TEST_PATH = /\.test\.(?:mjs|ts)$|-claims\/[\w-]+\.ts$/

/** The rows of all tables of promises: the text of each row and the tests that it names. */
function promisesIn(markdown) {
  const promises = []
  let isInTable = false
  for (const line of markdown.split('\n')) {
    if (line === HEADER) isInTable = true
    else if (!line.startsWith('|')) isInTable = false
    else if (isInTable && !/^\|[-|]+\|$/.test(line)) {
      const [, promise = '', tests = ''] = line.split(/(?<!\\)\|/)
      promises.push({ promise: promise.trim(), tests: referencesIn(tests) })
    }
  }
  return promises
}

/** `title` is the name of a test or of a `describe`, or both with `>` between them. */
function referencesIn(cell) {
  return [...cell.matchAll(REFERENCE)].map(([, title, path]) => ({
    titles: title.replace(/\\([_*|<>`])/g, '$1').split(' > '),
    path,
  }))
}

/** Problems with the tests of a promise. `read` returns undefined for a file that does not exist. */
function problemsWith({ promise, tests }, read) {
  if (tests.length === 0) return [`no test is named for: ${promise}`]
  return tests.flatMap(({ titles, path }) => {
    if (!TEST_PATH.test(path)) return [`${path} is not a test file`]
    const source = read(path)
    if (source === undefined) return [`${path} does not exist`]
    const code = source.replace(/^\s*(?:\/\/|\*|\/\*).*$/gm, '')
    if (SKIPPED_TESTS.test(code)) return [`${path} has tests that are skipped`]
    return titles
      .filter((title) => !hasTitle(code, title))
      .map((title) => `${path} has no test named: ${title}`)
  })
}

/** A title that ends in ` …` is the beginning of a longer one. */
function hasTitle(code, title) {
  const isBeginning = title.endsWith(' …')
  const text = isBeginning ? title.slice(0, -2) : title
  const literal = text.replace(/[.*+?^${}()|[\]\\]/g, '\\$&')
  const end = isBeginning ? '' : '\\1\\s*,'
  return new RegExp(`\\(\\s*(['"\`])${literal}${end}`).test(code)
}

function readSource(path) {
  const file = join(root, path)
  return existsSync(file) ? readFileSync(file, 'utf8') : undefined
}

const page = readFileSync(join(root, 'SECURITY.md'), 'utf8')

describe('SECURITY.md', () => {
  it('every promise of SECURITY.md names tests that exist', () => {
    const promises = promisesIn(page)
    expect(promises.length).toBeGreaterThan(40)
    expect(promises.flatMap((each) => problemsWith(each, readSource))).toEqual([])
  })

  it('every file that SECURITY.md links to exists', () => {
    const paths = [...page.matchAll(/\]\(([^)#\s]+)[^)]*\)/g)].map(([, path]) => path)
    const missing = paths.filter((path) => !/^https?:/.test(path) && !existsSync(join(root, path)))
    expect(missing).toEqual([])
  })
})

describe('the check of SECURITY.md', () => {
  const read = (path) =>
    ({
      'a.test.ts':
        "describe('a port', () => {\n  it('is closed (%s)', () => {})\n  // it('is open', \n",
      'skipped.test.ts': "it.skip('is closed', () => {})",
      'long.test.ts': 'it(`is closed, in 9 cases`, () => {})',
    })[path]
  const problemsOf = (row) =>
    promisesIn([HEADER, '|---|---|', row].join('\n')).flatMap((each) => problemsWith(each, read))

  it.each([
    '| It is closed. | [a port > is closed (%s)](a.test.ts) |',
    '| It is closed. | [a port](a.test.ts)<br>[is closed, …](long.test.ts) |',
  ])('a promise with its tests is accepted: %s', (row) => {
    expect(problemsOf(row)).toEqual([])
  })

  it.each([
    ['| It is closed. | none |', 'no test is named for: It is closed.'],
    ['| It is closed. | [is closed](b.test.ts) |', 'b.test.ts does not exist'],
    ['| It is closed. | [is closed](README.md) |', 'README.md is not a test file'],
    ['| It is closed. | [is closed](a.test.ts) |', 'a.test.ts has no test named: is closed'],
    ['| It is open. | [is open](a.test.ts) |', 'a.test.ts has no test named: is open'],
    ['| It is closed. | [a port > is shut](a.test.ts) |', 'a.test.ts has no test named: is shut'],
    [
      '| It is closed. | [is closed](skipped.test.ts) |',
      'skipped.test.ts has tests that are skipped',
    ],
  ])('a promise without its tests is reported: %s', (row, problem) => {
    expect(problemsOf(row)).toEqual([problem])
  })
})
