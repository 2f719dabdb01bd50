// test-group: io

import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { afterAll, describe, expect, it } from 'vitest'
import { walkProblems } from './check-walk.mjs'
import { root, runNode } from './run-command.mjs'

const filesWith = (files, functions) =>
  Array.from({ length: files }, (_, index) => ({
    file: `core/file-${index}.ts`,
    functions: Array.from({ length: functions }, () => 'run'),
  }))

/** Measures a call through three modules in a separate process, because vitest transforms imported modules. */
async function measureExample() {
  const folder = mkdtempSync(join(tmpdir(), 'walk-'))
  afterAll(() => rmSync(folder, { recursive: true }))
  const modules = {
    'package.json': '{ "type": "module" }',
    'a-last.js': 'export const last = (n) => n\nexport const unused = () => 1\n',
    'b-middle.js': [
      "import { last } from './a-last.js'",
      'let isSetUp = false',
      'function setUp() { isSetUp = true }',
      'export class Middle {',
      '  get value() { return last(1) + last(2) }',
      '}',
      'export function middle() { if (!isSetUp) setUp(); return new Middle().value }',
    ].join('\n'),
    'c-first.js':
      "import { middle } from './b-middle.js'\nexport async function first() { middle() }\n",
    'measure.mjs': [
      `import { measureWalk } from ${JSON.stringify(pathToFileURL(join(root, 'scripts/check-walk.mjs')).href)}`,
      "import { first } from './c-first.js'",
      `console.log(JSON.stringify(await measureWalk(first, ${JSON.stringify(`${folder}/`)})))`,
    ].join('\n'),
  }
  for (const [name, text] of Object.entries(modules)) writeFileSync(join(folder, name), text)
  const { stdout } = await runNode([join(folder, 'measure.mjs')])
  return JSON.parse(stdout)
}

describe('the walk check', () => {
  it('the walk check counts each executed function once, in order of execution, without set-up', async () => {
    expect(await measureExample()).toEqual([
      { file: 'c-first.ts', functions: ['first'] },
      { file: 'b-middle.ts', functions: ['get value', 'middle'] },
      { file: 'a-last.ts', functions: ['last'] },
    ])
  })

  it('the walk check rejects a call through more than 40 files', () => {
    expect(walkProblems(filesWith(41, 1))).toEqual(['41 files are more than the limit of 40'])
    expect(walkProblems(filesWith(40, 1))).toEqual([])
  })

  it('the walk check rejects a call through more than 150 functions', () => {
    expect(walkProblems(filesWith(1, 151))).toEqual([
      '151 functions are more than the limit of 150',
    ])
    expect(walkProblems(filesWith(1, 150))).toEqual([])
  })
})
