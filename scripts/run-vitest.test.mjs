// test-group: io

import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { runVitest } from './run-vitest.mjs'
import { closingLine } from './test-tally.mjs'

/** The closing line and exit code of a run over test files with these texts. */
async function runTests(...texts) {
  const folder = mkdtempSync(join(tmpdir(), 'tally-'))
  try {
    for (const [index, text] of texts.entries()) {
      writeFileSync(join(folder, `${index}.test.mjs`), text)
    }
    const { count, exitCode } = await runVitest(['--root', folder, '--globals'], {
      output: 'ignore',
    })
    return { line: closingLine(count), exitCode }
  } finally {
    rmSync(folder, { recursive: true })
  }
}

const PASSES = "it('passes', () => {})\n"
const FAILS = "it('fails', () => { throw new Error('no') })\n"
const WAITS = "it.skip('waits')\nit.todo('waits, too')\n"

describe.concurrent('runVitest', () => {
  it('a test run counts single tests over all files and omits zero skipped ones', async () => {
    const result = await runTests(PASSES + PASSES, PASSES)
    expect(result).toEqual({ line: '3 passed, 0 failed', exitCode: 0 })
  })

  it('a test run counts every kind of error as a failure', async () => {
    const failingTest = PASSES + FAILS + WAITS
    const doesNotLoad = `import './missing.mjs'\n${PASSES}`
    const brokenHook = `describe('x', () => {\nbeforeAll(() => { throw 'no' })\n${PASSES}})\n`
    const unhandledError = `${PASSES}void Promise.reject(new Error('unhandled'))\n`
    const result = await runTests(failingTest, doesNotLoad, brokenHook, unhandledError)
    expect(result).toEqual({ line: '2 passed, 4 failed, 3 skipped', exitCode: 1 })
  })

  it('a test run without executed tests fails', async () => {
    const result = await runTests(WAITS)
    expect(result).toEqual({ line: '0 passed, 0 failed, 2 skipped', exitCode: 1 })
  })
})
