// test-group: io

import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, it, onTestFinished } from 'vitest'
import { optionProblems } from './api-options.mjs'

function problemsIn(text) {
  const folder = mkdtempSync(join(tmpdir(), 'api-options-'))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  const file = join(folder, 'index.d.ts')
  writeFileSync(file, text)
  return optionProblems([{ subpath: 'package', file }])
}

it('an optional option without a default is listed, at any depth of the options', () => {
  const text = `
    interface Base {
      /** Its name. */
      name?: string
    }
    interface Options extends Base {
      /** A part. Default: none. */
      part?: {
        /** A word. */
        word?: string
      }
      /** Its colour. Default: red. */
      colour?: string
    }
    export declare function create(options?: Options): void
  `
  expect(problemsIn(text)).toEqual([
    'Base.name: no default; write "Default: …."',
    'Options.part.word: no default; write "Default: …."',
  ])
})

it('a numeric option needs a unit and a range', () => {
  const text = `
    type Duration = number | string
    interface Options {
      /** How big. */
      size: number
      /** Longest wait. Range: from 0 ms. */
      waitMs: Duration
      /** Most calls. Range: integers from 1. */
      limit: number
    }
    export interface Thing { run(options: Options): void }
  `
  expect(problemsIn(text)).toEqual([
    'Options.size: no range; write "Range: …."',
    'Options.size: no unit',
  ])
})

it('numbers in the parameters of a method are described in the comment of the method', () => {
  const text = `
    export interface Thing {
      /** Ends it. */
      close(options?: { graceMs?: number }): void
      /** Stops it. @param options.graceMs - Longest wait. Range: from 0 ms. Default: 1 s. */
      stop(options?: { graceMs?: number; signal?: AbortSignal }): void
    }
  `
  expect(problemsIn(text)).toEqual([
    'close().graceMs: no default; write "Default: …."',
    'close().graceMs: no range; write "Range: …."',
  ])
})

it('results, callbacks and read-only facts are no options', () => {
  const text = `
    interface Report { size?: number }
    interface Facts { readonly size?: number }
    interface Options {
      /** Called at the end. Default: none. */
      onEnd?: (report: Report) => void
    }
    export declare function read(options: Options, facts: Facts): Report
  `
  expect(problemsIn(text)).toEqual([])
})
